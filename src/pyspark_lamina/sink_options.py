"""The options of a query that writes: those of Spark's own Kafka sink, and a few of ours.

Owns their names and defaults, and that none is ignored without a word. Pure. Must not know what is done with them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from lamina.arrow.errors import ReadError
from lamina.arrow.properties import parse_properties
from lamina.producing.errors import WriteError
from lamina.producing.properties import parse_producer_properties
from lamina.producing.sink_settings import DEFAULT_DECISION_TOPIC, DEFAULT_PREFIX, SinkSettings
from pyspark_lamina.option_values import boolean, whole_number

TOPIC, EXACTLY_ONCE, QUERY, BATCH = "topic", "exactlyOnce", "queryId", "batchId"
DECISION_TOPIC, PREFIX = "decisionTopic", "transactionalIdPrefix"

OURS: Final = (TOPIC, EXACTLY_ONCE, QUERY, BATCH, DECISION_TOPIC, PREFIX)
_OF_SPARK: Final = ("checkpointLocation", "queryName", "path", "includeHeaders")
"""What Spark hands on, or says of both its Kafka source and its sink."""
_SERVERS: Final = "kafka.bootstrap.servers"
_KAFKA: Final = "kafka."
_REFUSED: Final = {
    "key.serializer": "the column key is written as it is",
    "value.serializer": "the column value is written as it is",
    "interceptor.classes": "interceptors are classes of Java",
    "partitioner.class": "give a column partition instead",
}
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    settings: SinkSettings
    is_exactly_once: bool
    query: str | None
    """Its name in the decision topic, where Spark's own is not to be used."""
    batch: int | None
    """Of a write that is no stream."""


def parse_sink_options(given: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    """Of a mapping that finds names in any case. Raises `WriteError` or `ReadError`, with the name of the option."""
    _refuse_unknown(given)
    query = _name(given, QUERY)
    batch = whole_number(BATCH, given[BATCH], least=0) if BATCH in given else None
    if is_stream and batch is not None:
        raise WriteError(f"{BATCH} is for df.write; Spark numbers the batches of a stream itself")
    if not is_stream and (query is None) != (batch is None):
        raise WriteError(f"{QUERY} and {BATCH} go together: they name the write that is done once")
    default = "true" if is_stream or batch is not None else "false"
    is_exactly_once = boolean(EXACTLY_ONCE, given.get(EXACTLY_ONCE, default))
    if is_exactly_once and not is_stream and batch is None:
        raise WriteError(
            f"{EXACTLY_ONCE}: name the write by {QUERY} and {BATCH}, so that it is known when it is repeated"
        )
    properties = {name[len(_KAFKA) :]: value for name, value in given.items() if name.startswith(_KAFKA)}
    for name, reason in _REFUSED.items():
        if name in properties:
            raise WriteError(f"{_KAFKA}{name} cannot be set: {reason}")
    try:
        client = parse_properties({"client.id": "pyspark-lamina", **properties})
        producer = parse_producer_properties(properties, is_transactional=is_exactly_once)
    except (ReadError, WriteError) as error:
        raise WriteError(f"{_KAFKA}{error}") from None
    settings = SinkSettings(
        client,
        producer,
        given.get(TOPIC),
        _name(given, DECISION_TOPIC) or DEFAULT_DECISION_TOPIC,
        _name(given, PREFIX) or DEFAULT_PREFIX,
    )
    return SinkOptions(settings, is_exactly_once, query, batch)


_OF_READING = "subscribe"
"""What names the topics of a read."""


def _refuse_unknown(given: Iterable[str]) -> None:
    known = {name.lower(): name for name in (*OURS, *_OF_SPARK, _SERVERS)}
    for name in given:
        lowered = name.lower()
        if lowered in known or lowered.startswith(_KAFKA):
            continue
        close = [TOPIC] if lowered == _OF_READING else get_close_matches(lowered, known, 1)
        hint = f"; {known[close[0]]} is meant, perhaps" if close else ""
        raise WriteError(f"there is no option {name!r} for writing{hint}")


def _name(given: Mapping[str, str], option: str) -> str | None:
    text = given.get(option)
    if text is not None and not _NAME.fullmatch(text):
        raise WriteError(f"{option}: {text!r} is no name of letters, digits, dots, underscores and dashes")
    return text
