"""What options mean, and which sentence tells what they cannot mean."""

from collections.abc import Mapping

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from lamina.arrow.cluster import AtTime
from lamina.arrow.cutting import Bounds
from lamina.arrow.errors import ReadError
from lamina.arrow.prefetching import ReadFiles
from lamina.peer.listing import EARLIEST, LATEST
from pyspark_lamina.options import SourceOptions, TriggerLimits, parse_options

SERVERS = {"kafka.bootstrap.servers": "one:1,two:2"}


def parse(given: Mapping[str, str] | None = None, *, is_stream: bool = False, **more: str) -> SourceOptions:
    options = SERVERS | {"subscribe": "t"} | dict(given or {}) | more
    return parse_options(CaseInsensitiveDict(options), is_stream=is_stream)


def test_defaults_are_those_of_sparks_own_source() -> None:
    batch, stream = parse(), parse(is_stream=True)
    assert (batch.start.everywhere, batch.end.everywhere) == (EARLIEST, LATEST)
    assert (stream.start.everywhere, stream.end.everywhere) == (LATEST, LATEST)
    assert batch.fails_on_data_loss
    assert batch.bounds == Bounds()
    assert batch.trigger == TriggerLimits(max_delay_ms=15 * 60_000)
    assert batch.poll_timeout_ms == 120_000
    assert batch.metadata_ttl_ms == 0
    assert (batch.commit_group, batch.is_table, batch.read_files) == (None, False, ReadFiles.AUTO)
    assert [str(address) for address in batch.client.bootstrap] == ["one:1", "two:2"]


def test_names_are_found_in_any_case() -> None:
    options = parse(
        STARTINGOFFSETS="Latest",
        failondataloss="FALSE",
        minPartitions="7",
        maxbytesperpartition="64m",
        MaxOffsetsPerTrigger="1000",
        maxtriggerdelay="30s",
        is_stream=True,
    )
    assert options.start.everywhere == LATEST
    assert not options.fails_on_data_loss
    assert options.bounds == Bounds(7, None, 64 << 20)
    assert options.trigger == TriggerLimits(1000, max_delay_ms=30_000)


def test_kafkas_properties_reach_the_client() -> None:
    options = parse(
        {
            "kafka.isolation.level": "read_committed",
            "kafka.client.id": "me",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.group.id": "accepted",
            "kafka.session.timeout.ms": "accepted",
        },
        groupIdPrefix="accepted",
    )
    assert options.client.is_committed_only
    assert options.client.client_id == "me"
    assert options.client.fetch_max_bytes == 1000


def test_times_go_before_times_of_partitions_and_these_before_offsets() -> None:
    offsets = {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":9}}'}
    by_time = {"startingOffsetsByTimestamp": '{"t":{"0":100}}', "endingOffsetsByTimestamp": '{"t":{"0":200}}'}
    times = {"startingTimestamp": "1000", "endingTimestamp": "2000"}
    partitions = [("t", 0)]
    found = parse(offsets)
    assert found.start.positions(partitions) == {("t", 0): 5}
    assert found.end.positions(partitions) == {("t", 0): 9}
    found = parse(offsets | by_time)
    assert found.start.positions(partitions) == {("t", 0): AtTime(100)}
    # Where no record is that young, a query ends at the latest offset whatever the strategy.
    assert found.end.positions(partitions) == {("t", 0): AtTime(200, or_latest=True)}
    found = parse(offsets | by_time | times, startingOffsetsByTimestampStrategy="LATEST")
    assert found.start.positions(partitions) == {("t", 0): AtTime(1000, or_latest=True)}
    assert found.end.positions(partitions) == {("t", 0): AtTime(2000, or_latest=True)}


def test_limits_of_streams_do_not_matter_to_other_queries() -> None:
    assert parse(maxOffsetsPerTrigger="5", minOffsetsPerTrigger="2", maxTriggerDelay="1h").trigger.max_offsets == 5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subscribe": " , "}, "subscribe: no topic is named"),
        ({"assign": "{}"}, "name the topics by one of subscribe, subscribePattern and assign; given: subscribe and"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing: name at least one broker as HOST:PORT"),
        ({"kafka.bootstrap.servers": "a b"}, "kafka.bootstrap.servers: 'a b' is not of the form HOST:PORT"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset cannot be set: say where to start by start"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit cannot be set: offsets are kept in"),
        ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer cannot be set"),
        ({"kafka.security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism is missing: it must be one of PLAIN"),
        (
            {"kafka.securty.protocol": "SASL_SSL"},
            r"kafka.securty.protocol is unknown; did you mean security.protocol\?",
        ),
        ({"kafka.sasl.mechanism": "PLAIN"}, "kafka.sasl.mechanism has no meaning with security.protocol=PLAINTEXT"),
        ({"startOffsets": "earliest"}, "there is no option 'startoffsets' for reading; startingOffsets is meant"),
        ({"bootstrap.servers": "x"}, "there is no option 'bootstrap.servers' for reading; kafka.bootstrap.servers is"),
        ({"topic": "t"}, "there is no option 'topic' for reading; subscribe is meant, perhaps"),
        ({"path": "x"}, r'load\(\) takes no name here: name topics by .option\("subscribe", …\), then call load\(\)$'),
        ({"startingOffsets": "soon"}, "startingOffsets: 'soon' is neither earliest nor latest nor JSON such as"),
        ({"startingOffsets": '{"t":[1]}'}, r"startingOffsets: expected JSON such as \{\"topicA\""),
        ({"startingOffsets": '{"t":{"0":1.5}}'}, "startingOffsets: expected JSON such as"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets: expected JSON such as"),
        ({"startingOffsets": "{"}, "startingOffsets: expected JSON such as"),
        ({"startingOffsets": "latest"}, "startingOffsets: a query that is no stream cannot start at the latest offset"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets of t-0: a query that is no stream cannot start at"),
        ({"endingOffsets": "earliest"}, "endingOffsets: a query cannot end at the earliest offset"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "endingOffsets of t-0: a query cannot end at the earliest offset"),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            "startingOffsets of t-0 is 5, after endingOffsets, which is 4",
        ),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp: 'yesterday' is not a whole number"),
        ({"startingOffsetsByTimestamp": '{"t":{"0":-1}}'}, "startingOffsetsByTimestamp: expected JSON such as"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "startingOffsetsByTimestampStrategy: 'guess' is neither"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss: 'maybe' is neither true nor false"),
        ({"includeHeaders": "1"}, "includeHeaders: '1' is neither true nor false"),
        ({"minPartitions": "0"}, "minPartitions: 0 is not a number from 1"),
        ({"maxRecordsPerPartition": "-5"}, "maxRecordsPerPartition: -5 is not a number from 1"),
        ({"readFiles": "always"}, "readFiles: 'always' is none of auto, never, require"),
        ({"maxBytesPerPartition": "much"}, "maxBytesPerPartition: 'much' is not a size such as 134217728 or 128m"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: 'soon' is not a time such as 500ms, 30s or 15m"),
        ({"partition.metadata.cache.ttl.ms": "0"}, "partition.metadata.cache.ttl.ms: 0 is neither"),
        ({"fetchOffset.numRetries": "x"}, "fetchOffset.numRetries: 'x' is not a whole number"),
        ({"maxRecordsPerTrigger": "5"}, "maxRecordsPerTrigger is for streams"),
        ({"commitGroup": "g"}, "commitGroup is for streams"),
        ({"view": "tabel"}, "view: 'tabel' is neither log nor table"),
        ({"view": "table", "minPartitions": "2"}, "minPartitions cannot be used with view=table"),
        ({"view": "table", "startingOffsets": '{"t":{"0":5}}'}, "startingOffsets cannot be used with view=table"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_with_the_name_of_the_option(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ReadError, match=rf"^{sentence}") as raised:
        parse(given)
    assert "\n" not in str(raised.value)


def test_a_table_which_spark_gives_no_options_is_told_what_to_make() -> None:
    with pytest.raises(ReadError, match=r"^kafka.bootstrap.servers is missing: .*: make a view$"):
        parse_options(CaseInsensitiveDict({}), is_stream=False)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets has no meaning for a stream, which does not end"),
        ({"endingTimestamp": "5"}, "endingTimestamp has no meaning for a stream"),
        ({"commitGroup": " "}, "commitGroup: the name of the group is empty"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger is 9, more than maxOffsetsPerTrigger, which is 8",
        ),
    ],
)
def test_what_makes_no_sense_of_a_stream_is_told_too(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ReadError, match=rf"^{sentence}"):
        parse(given, is_stream=True)


def test_nothing_to_read_is_told() -> None:
    with pytest.raises(ReadError, match=r"^name the topics by one of subscribe, .*; given: none of them$"):
        parse_options(CaseInsensitiveDict(SERVERS), is_stream=False)
    for pattern, sentence in (("", "the pattern is empty"), ("(", r"'\(' is not a regular expression")):
        with pytest.raises(ReadError, match=rf"^subscribePattern: {sentence}"):
            parse_options(CaseInsensitiveDict(SERVERS | {"subscribePattern": pattern}), is_stream=False)
    for assigned, sentence in (("{}", "no partition is named"), ('{"t":["0"]}', "expected JSON such as")):
        with pytest.raises(ReadError, match=rf"^assign: {sentence}"):
            parse_options(CaseInsensitiveDict(SERVERS | {"assign": assigned}), is_stream=False)
