"""What a person may say of a write, and what is said of the rest."""

import pytest

from lamina.arrow.errors import ReadError
from lamina.producing.errors import WriteError
from lamina.producing.sink_settings import DEFAULT_DECISION_TOPIC
from lamina.records.batch import Codec
from pyspark_lamina.sink_options import SinkOptions, parse_sink_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
NAMED = {"queryId": "nightly", "batchId": "7"}


def parse(given: dict[str, str], *, is_stream: bool = False) -> SinkOptions:
    return parse_sink_options(SERVERS | given, is_stream=is_stream)


def test_a_stream_writes_exactly_once_unless_it_is_told_otherwise() -> None:
    assert parse({}, is_stream=True).is_exactly_once
    assert not parse({"exactlyOnce": "false"}, is_stream=True).is_exactly_once


def test_a_write_that_ends_is_done_once_if_it_has_a_name() -> None:
    assert not parse({}).is_exactly_once
    named = parse(NAMED)
    assert (named.is_exactly_once, named.query, named.batch) == (True, "nightly", 7)
    assert not parse(NAMED | {"exactlyOnce": "false"}).is_exactly_once


def test_settings_have_defaults_and_are_taken_as_given() -> None:
    settings = parse({}).settings
    assert (settings.topic, settings.decision_topic, settings.prefix) == (None, DEFAULT_DECISION_TOPIC, "lamina")
    given = {"topic": "t", "decisionTopic": "d", "transactionalIdPrefix": "p", "kafka.compression.type": "zstd"}
    settings = parse(given).settings
    assert (settings.topic, settings.decision_topic, settings.prefix) == ("t", "d", "p")
    assert settings.producer.batch_format.codec is Codec.ZSTD


def test_what_spark_hands_on_is_left_alone() -> None:
    parse({"checkpointLocation": "/tmp/x", "includeHeaders": "true", "kafka.linger.ms": "5"}, is_stream=True)


@pytest.mark.parametrize(
    ("given", "is_stream", "sentence"),
    [
        ({"exactlyOnec": "true"}, True, "there is no option 'exactlyOnec' for writing; exactlyOnce is meant, perhaps"),
        ({"subscribe": "t"}, False, "there is no option 'subscribe' for writing; topic is meant, perhaps"),
        ({"exactlyOnce": "yes"}, True, "exactlyOnce: 'yes' is neither true nor false"),
        ({"exactlyOnce": "true"}, False, "exactlyOnce: name the write by queryId and batchId"),
        ({"queryId": "q"}, False, "queryId and batchId go together"),
        ({"batchId": "1"}, True, "batchId is for df.write"),
        ({"queryId": "q", "batchId": "-1"}, False, "batchId: -1 is not a number from 0"),
        ({"queryId": "a/b", "batchId": "1"}, False, "queryId: 'a/b' is no name of letters"),
        ({"decisionTopic": ""}, False, "decisionTopic: '' is no name"),
        ({"kafka.acks": "0"}, False, "kafka.acks: '0' is not one of all, -1, 1"),
        ({"kafka.acks": "1"}, True, "kafka.acks: writing exactly once needs acks=all"),
        (
            {"kafka.key.serializer": "x"},
            False,
            "kafka.key.serializer cannot be set: the column key",
        ),
        (
            {"kafka.securty.protocol": "SASL_SSL"},
            False,
            r"kafka.securty.protocol is unknown; did you mean security.protocol\?",
        ),
        ({"kafka.bootstrap.servers": ""}, False, "kafka.bootstrap.servers is missing"),
    ],
)
def test_what_cannot_be_is_one_sentence(given: dict[str, str], is_stream: bool, sentence: str) -> None:
    with pytest.raises((WriteError, ReadError), match=f"^{sentence}"):
        parse(given, is_stream=is_stream)
