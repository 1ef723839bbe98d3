"""The options of a query that reads: those of Spark's own Kafka source, and a few of ours.

Owns their names and defaults, and that none is ignored without a word: one that nobody knows is refused, with the name
that was probably meant. Pure. Must not know what is done with them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from lamina.arrow.cutting import Bounds
from lamina.arrow.errors import ReadError
from lamina.arrow.prefetching import DEFAULT_POLL_TIMEOUT_MS, ReadFiles
from lamina.arrow.properties import ClientProperties, parse_properties
from lamina.peer.listing import EARLIEST, LATEST
from pyspark_lamina.columns import INCLUDE_HEADERS
from pyspark_lamina.option_values import boolean, duration_ms, size_bytes, whole_number
from pyspark_lamina.places import END, START, STRATEGY, Places, check_batch, parse_places
from pyspark_lamina.topic_selection import ASSIGN, PATTERN, SUBSCRIBE, Selection, parse_selection

FAIL_ON_DATA_LOSS = "failOnDataLoss"
MIN_PARTITIONS, MAX_RECORDS, MAX_BYTES = "minPartitions", "maxRecordsPerPartition", "maxBytesPerPartition"
MAX_OFFSETS_PER_TRIGGER, MIN_OFFSETS_PER_TRIGGER = "maxOffsetsPerTrigger", "minOffsetsPerTrigger"
MAX_RECORDS_PER_TRIGGER, MAX_BYTES_PER_TRIGGER = "maxRecordsPerTrigger", "maxBytesPerTrigger"
MAX_TRIGGER_DELAY, DEFAULT_TRIGGER_DELAY = "maxTriggerDelay", "15m"
COMMIT_GROUP, VIEW, READ_FILES = "commitGroup", "view", "readFiles"
POLL_TIMEOUT = "kafkaConsumer.pollTimeoutMs"
METADATA_TTL = "partition.metadata.cache.ttl.ms"

_CHECKED_ONLY = ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs")
"""Of Spark's own source; how often a question is asked again is the client's to know here (kafka.retry.backoff.ms)."""

KNOWN = (
    *(SUBSCRIBE, PATTERN, ASSIGN, INCLUDE_HEADERS, FAIL_ON_DATA_LOSS, STRATEGY),
    *(START.timestamp, START.by_timestamp, START.offsets, END.timestamp, END.by_timestamp, END.offsets),
    *(MIN_PARTITIONS, MAX_RECORDS, MAX_BYTES, MAX_OFFSETS_PER_TRIGGER, MIN_OFFSETS_PER_TRIGGER),
    *(MAX_RECORDS_PER_TRIGGER, MAX_BYTES_PER_TRIGGER, MAX_TRIGGER_DELAY, COMMIT_GROUP, VIEW, READ_FILES),
    *(POLL_TIMEOUT, METADATA_TTL, "groupIdPrefix", *_CHECKED_ONLY),
)
_NEED_TRIGGERS = (MAX_RECORDS_PER_TRIGGER, MAX_BYTES_PER_TRIGGER, COMMIT_GROUP)
"""What Spark's own source has beside these is ignored by a query that is no stream, there as here."""
_OF_KAFKA = "kafka."
_OFTEN_FORGOTTEN = ("kafka.bootstrap.servers", "kafka.isolation.level", "kafka.security.protocol", "kafka.group.id")
REFUSED = {
    "auto.offset.reset": f"say where to start by {START.offsets}",
    "key.deserializer": "keys are given as they are; cast or decode the column",
    "value.deserializer": "values are given as they are; cast or decode the column",
    "enable.auto.commit": f"offsets are kept in the checkpoint; {COMMIT_GROUP} lets a consumer group see them",
    "interceptor.classes": "interceptors are classes of Java",
}
_WHOLE, _TABLE = "log", "table"


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """How much one micro-batch takes; None where nothing is said."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    max_delay_ms: int = 0

    @property
    def are_given(self) -> bool:
        return any(
            limit is not None for limit in (self.max_offsets, self.min_offsets, self.max_records, self.max_bytes)
        )


@dataclass(frozen=True, slots=True)
class SourceOptions:
    client: ClientProperties
    selection: Selection
    start: Places
    end: Places
    bounds: Bounds
    trigger: TriggerLimits
    fails_on_data_loss: bool
    is_table: bool
    read_files: ReadFiles
    poll_timeout_ms: int
    metadata_ttl_ms: int
    commit_group: str | None


def parse_options(given: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """Of a mapping that finds names in any case. Raises `ReadError`, one sentence, with the name of the option."""
    _refuse_unknown(given)
    properties = {name[len(_OF_KAFKA) :]: value for name, value in given.items() if name.startswith(_OF_KAFKA)}
    for name in _CHECKED_ONLY:
        whole_number(name, given.get(name, "0"), least=0)
    boolean(INCLUDE_HEADERS, given.get(INCLUDE_HEADERS, "false"))
    includes_internal = properties.get("exclude.internal.topics", "true").strip().lower() == "false"
    options = SourceOptions(
        client=_client(properties),
        selection=parse_selection(given, includes_internal=includes_internal),
        start=parse_places(given, START, LATEST if is_stream else EARLIEST),
        end=parse_places(given, END, LATEST),
        bounds=Bounds(
            _optional(given, MIN_PARTITIONS),
            _optional(given, MAX_RECORDS),
            size_bytes(MAX_BYTES, given[MAX_BYTES]) if MAX_BYTES in given else None,
        ),
        trigger=_trigger_limits(given),
        fails_on_data_loss=boolean(FAIL_ON_DATA_LOSS, given.get(FAIL_ON_DATA_LOSS, "true")),
        is_table=_is_table(given),
        read_files=_read_files(given),
        poll_timeout_ms=_optional(given, POLL_TIMEOUT) or DEFAULT_POLL_TIMEOUT_MS,
        metadata_ttl_ms=_metadata_ttl_ms(given),
        commit_group=_commit_group(given),
    )
    _check_together(given, options, is_stream=is_stream)
    return options


def _refuse_unknown(given: Iterable[str]) -> None:
    known = {name.lower(): name for name in (*KNOWN, *_OFTEN_FORGOTTEN)}
    for name in given:
        lowered = name.lower()
        if lowered in known or lowered.startswith(_OF_KAFKA):
            continue
        if f"{_OF_KAFKA}{lowered}" in known:
            meant = f"{_OF_KAFKA}{lowered}"
        else:
            meant = next((known[close] for close in get_close_matches(lowered, known, 1)), "")
        if lowered == "topic":
            meant = SUBSCRIBE
        if lowered == "path":
            raise ReadError(f'load() takes no name here: name topics by .option("{SUBSCRIBE}", …), then call load()')
        raise ReadError(f"there is no option {name!r} for reading" + (f"; {meant} is meant, perhaps" if meant else ""))


def _client(properties: Mapping[str, str]) -> ClientProperties:
    for name, advice in REFUSED.items():
        if name in properties:
            raise ReadError(f"{_OF_KAFKA}{name} cannot be set: {advice}")
    try:
        return parse_properties({"client.id": "pyspark-lamina", **properties})
    except ReadError as error:
        told = f"{_OF_KAFKA}{error}"
        # Spark keeps the options of CREATE TABLE to itself.
        raise ReadError(told if properties else f"{told}. A table is given no options: make a view") from None


def _trigger_limits(given: Mapping[str, str]) -> TriggerLimits:
    max_bytes = given.get(MAX_BYTES_PER_TRIGGER)
    limits = TriggerLimits(
        _optional(given, MAX_OFFSETS_PER_TRIGGER),
        _optional(given, MIN_OFFSETS_PER_TRIGGER),
        _optional(given, MAX_RECORDS_PER_TRIGGER),
        None if max_bytes is None else size_bytes(MAX_BYTES_PER_TRIGGER, max_bytes),
        duration_ms(MAX_TRIGGER_DELAY, given.get(MAX_TRIGGER_DELAY, DEFAULT_TRIGGER_DELAY)),
    )
    if limits.max_offsets is not None and limits.min_offsets is not None and limits.min_offsets > limits.max_offsets:
        raise ReadError(
            f"{MIN_OFFSETS_PER_TRIGGER} is {limits.min_offsets}, more than {MAX_OFFSETS_PER_TRIGGER}, "
            f"which is {limits.max_offsets}"
        )
    return limits


def _optional(given: Mapping[str, str], name: str) -> int | None:
    return whole_number(name, given[name]) if name in given else None


def _is_table(given: Mapping[str, str]) -> bool:
    view = given.get(VIEW, _WHOLE).strip().lower()
    if view not in (_WHOLE, _TABLE):
        raise ReadError(f"{VIEW}: {view!r} is neither {_WHOLE} nor {_TABLE}")
    return view == _TABLE


def _read_files(given: Mapping[str, str]) -> ReadFiles:
    text = given.get(READ_FILES, ReadFiles.AUTO)
    try:
        return ReadFiles(text.strip().lower())
    except ValueError:
        raise ReadError(f"{READ_FILES}: {text!r} is none of {', '.join(ReadFiles)}") from None


def _metadata_ttl_ms(given: Mapping[str, str]) -> int:
    ttl_ms = whole_number(METADATA_TTL, given.get(METADATA_TTL, "-1"), least=-1)
    if ttl_ms == 0:
        raise ReadError(f"{METADATA_TTL}: 0 is neither a time in milliseconds nor -1, which is never")
    return max(ttl_ms, 0)


def _commit_group(given: Mapping[str, str]) -> str | None:
    group = given.get(COMMIT_GROUP)
    if group is not None and not group.strip():
        raise ReadError(f"{COMMIT_GROUP}: the name of the group is empty")
    return None if group is None else group.strip()


def _check_together(given: Mapping[str, str], options: SourceOptions, *, is_stream: bool) -> None:
    if is_stream:
        for name in (END.timestamp, END.by_timestamp, END.offsets):
            if name in given:
                raise ReadError(f"{name} has no meaning for a stream, which does not end")
    else:
        check_batch(options.start, options.end)
        for name in _NEED_TRIGGERS:
            if name in given:
                raise ReadError(f"{name} is for streams: a query that is none has no triggers")
    if options.is_table:
        _check_table(given, options, is_stream=is_stream)


def _check_table(given: Mapping[str, str], options: SourceOptions, *, is_stream: bool) -> None:
    for name in (MIN_PARTITIONS, MAX_RECORDS, MAX_BYTES):
        if name in given:
            raise ReadError(
                f"{name} cannot be used with {VIEW}={_TABLE}: a key is in one partition, and so in one task"
            )
    if not is_stream and options.start.everywhere != EARLIEST:
        raise ReadError(f"{options.start.option} cannot be used with {VIEW}={_TABLE}: a table is all of its topic")
