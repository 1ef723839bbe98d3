"""Topics of a real broker as Arrow: every record once, in its columns, whatever happens to the log meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pytest

import lamina.arrow
from lamina.arrow import DataLoss, ReadError
from lamina.arrow.cluster import describe_topics
from lamina.arrow.connecting import open_cluster
from lamina.arrow.driving import LoopThread
from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.reading import read_range
from lamina.errors import KafkaError, NetworkError
from tests.arrow.topics import client, create, delete, delete_head, make_compacted, numbered, produce, transact
from tests.broker.process import BrokerProcess
from tests.broker.test_compaction import QUICKLY

Start = Callable[..., BrokerProcess]
NOW_MS = 1_700_000_000_000
SMALL = {"max.partition.fetch.bytes": "2000", "fetch.max.wait.ms": "50"}
"""Several fetches for a few records."""


def rows(broker: BrokerProcess, topic: str, *columns: str, **given: object) -> list[tuple[object, ...]]:
    """Over Fetch."""
    given = {"bootstrap_servers": broker.address, "read_files": "never", **given}
    reader = lamina.arrow.read(topic, columns, **given)  # type: ignore[arg-type]
    return [tuple(row.values()) for row in reader.read_all().to_pylist()]


def test_a_row_has_kafkas_columns(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    headers = [("origin", b"test"), ("empty", b""), ("none", None)]
    produce(broker.address, topic, [(b"k", b"v"), (None, None)], timestamps=[NOW_MS, NOW_MS + 1], headers=headers)
    reader = lamina.arrow.read(topic, bootstrap_servers=broker.address)
    assert reader.schema == pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("timestampType", pa.int32()),
        ]
    )
    first, second = reader.read_all().to_pylist()
    assert first == {
        "key": b"k",
        "value": b"v",
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": datetime.fromtimestamp(NOW_MS / 1000, UTC),
        "timestampType": 0,
    }
    assert (second["key"], second["value"]) == (None, None)
    told = lamina.arrow.read(topic, ["headers"], bootstrap_servers=broker.address).read_all().to_pylist()
    assert [(one["key"], one["value"]) for one in told[0]["headers"]] == headers


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_of_every_partition_comes_once_over_many_fetches(
    broker: BrokerProcess, topic: str, codec: str
) -> None:
    create(broker.address, topic, 2)
    for partition in range(2):
        config: dict[str, str | int] = {"compression.type": codec, "batch.num.messages": 7}
        produce(broker.address, topic, numbered(100), partition=partition, config=config)
    found = rows(broker, topic, "partition", "offset", "key", "value", properties=SMALL)
    assert found == [(p, n, b"k%d" % n, b"v%d" % n) for p in range(2) for n in range(100)]


def test_only_constants_and_only_some_partitions(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic, 3)
    produce(broker.address, topic, numbered(3), partition=2)
    assert rows(broker, topic, "topic", "partition", partitions=[0, 2]) == [(topic, 2)] * 3


def test_places_are_offsets_words_and_times(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(10), timestamps=[NOW_MS + n * 1000 for n in range(10)])

    def offsets(**given: object) -> list[object]:
        return [row[0] for row in rows(broker, topic, "offset", **given)]

    at = datetime.fromtimestamp(NOW_MS / 1000 + 4, UTC)
    assert offsets(start=3, end=5) == [3, 4]
    assert offsets(start={0: 8}) == [8, 9]
    assert offsets(start=at, end={0: 6}) == [4, 5]
    assert offsets(end=at) == [0, 1, 2, 3]
    assert offsets(start=datetime.fromtimestamp(NOW_MS / 1000 + 99, UTC)) == []
    assert offsets(start="latest") == []


def test_aborted_transactions_are_left_out_of_committed_reads(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, [(None, b"plain")])
    transact(broker.address, topic, [b"no"] * 50, commits=False)
    transact(broker.address, topic, [b"yes"] * 50, commits=True)
    committed = rows(broker, topic, "value", properties={**SMALL, "isolation.level": "read_committed"})
    assert committed == [(b"plain",)] + [(b"yes",)] * 50
    assert rows(broker, topic, "value", properties=SMALL) == [(b"plain",)] + [(b"no",)] * 50 + [(b"yes",)] * 50


def test_a_compacted_topic_is_read_over_its_gaps(own_broker: Start) -> None:
    broker = own_broker(*QUICKLY)
    make_compacted(broker.address, broker.log_dir, "t")
    found = rows(broker, "t", "key", "offset", "value", properties=SMALL)
    assert len(found) < 600
    latest = {key: (offset, value) for key, offset, value in found}
    assert latest == {b"k%02d" % key: (29 * 50 + key, b"29" * 20) for key in range(50)}
    middle = rows(broker, "t", "offset", start=100, end=1400, properties=SMALL)
    assert middle == [(offset,) for _, offset, _ in found if isinstance(offset, int) and 100 <= offset < 1400]


def test_a_value_larger_than_a_fetch_comes_whole(own_broker: Start) -> None:
    broker = own_broker("--set", "message.max.bytes=70000000")
    create(broker.address, "t")
    large = b"x" * (20 << 20)
    produce(broker.address, "t", [(b"k", large), (b"l", b"v")], config={"message.max.bytes": 70_000_000})
    assert rows(broker, "t", "value", properties=SMALL) == [(large,), (b"v",)]


def test_a_broker_that_restarts_in_the_middle_is_found_again(own_broker: Start) -> None:
    broker = own_broker()
    broker.keep_port()
    create(broker.address, "t")
    produce(broker.address, "t", numbered(500), config={"batch.num.messages": 10})
    reader = lamina.arrow.read("t", ["offset"], bootstrap_servers=broker.address, properties=SMALL)
    found = reader.read_next_batch().column("offset").to_pylist()
    broker.kill()
    broker.start()
    found += [one for batch in reader for one in batch.column("offset").to_pylist()]
    assert found == list(range(500))


# What is wrong is one sentence


def test_what_was_deleted_before_the_start_is_data_loss(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(10))
    delete_head(broker.address, topic, 0, before=4)
    with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 begins at offset 4, and 2 was asked for"):
        rows(broker, topic, "offset", start=2)
    asked = RangeToFetch(topic, 0, 2, 10)
    with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 begins at offset 4, and 2 was asked for"):
        list(read_range(client(broker.address), asked, ["offset"]))
    (found,) = read_range(client(broker.address), replace(asked, tolerates_loss=True), ["offset"])
    assert found.column("offset").to_pylist() == list(range(4, 10))
    reason = f"{topic}-0 begins at offset 4, and 2 was asked for"
    assert caplog.messages == [f"data loss: {reason}; skipped offsets 2 to 3 of {topic}-0"]


def test_an_end_that_is_never_reached_is_data_loss_after_a_while(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(3))
    asked = RangeToFetch(topic, 0, 0, 9, poll_timeout_ms=1)
    with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 ends at offset 3, and 9 was asked for"):
        list(read_range(client(broker.address), asked, ["offset"]))
    (found,) = read_range(client(broker.address), replace(asked, tolerates_loss=True), ["offset"])
    assert found.num_rows == 3
    assert caplog.messages == [
        f"data loss: {topic}-0 ends at offset 3, and 9 was asked for; skipped offsets 3 to 8 of {topic}-0"
    ]


def test_a_topic_made_again_is_not_read_under_its_old_id(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    asked = RangeToFetch(topic, 0, 0, 3, topic_id(broker, topic))
    delete(broker.address, topic)
    create(broker.address, topic)
    produce(broker.address, topic, numbered(3))
    with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 was deleted and made again"):
        list(read_range(client(broker.address), asked, ["offset"]))
    assert list(read_range(client(broker.address), replace(asked, tolerates_loss=True), ["offset"])) == []


def test_a_topic_made_again_while_it_is_read_is_not_read_on(broker: BrokerProcess, topic: str) -> None:
    small_batches: dict[str, str | int] = {"batch.num.messages": 10}
    create(broker.address, topic)
    produce(broker.address, topic, [(b"k", b"old")] * 1000, config=small_batches)
    asked = RangeToFetch(topic, 0, 0, 1000, topic_id(broker, topic))
    batches = read_range(client(broker.address, SMALL), asked, ["value"])
    found = next(batches).column("value").to_pylist()
    delete(broker.address, topic)
    create(broker.address, topic)
    produce(broker.address, topic, [(b"k", b"new")] * 1000, config=small_batches)
    with pytest.raises(DataLoss, match=f"^data loss: {topic}-0 was deleted and made again"):
        found.extend(value for batch in batches for value in batch.column("value").to_pylist())
    assert set(found) == {b"old"}


def topic_id(broker: BrokerProcess, topic: str) -> UUID | None:
    async def ask() -> UUID | None:
        async with open_cluster(client(broker.address)) as cluster:
            return (await describe_topics(cluster, [topic]))[topic].topic_id

    with LoopThread() as loop:
        return loop.run(ask())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"columns": ["kye"]}, "there is no column 'kye'; there are key, value"),
        ({"columns": []}, "name at least one column"),
        ({"topic": "nowhere"}, "there is no topic 'nowhere'"),
        ({"partitions": [7]}, "has no partition 7; it has 1, counted from 0"),
        ({"topic": ["t"]}, "topic: ['t'] is not one name"),
        ({"columns": "key"}, "columns: 'key' is not a list of names"),
        ({"start": {3: 0}}, "has no partition 3; it has 1"),
        ({"start": "soon"}, "'soon' is neither 'earliest' nor 'latest'"),
        ({"end": -5}, "-5 is not an offset"),
        ({"properties": {"isolation.level": "some"}}, "isolation.level: 'some' is not one of"),
        ({"properties": {"fetch.max.wait.ms": "long"}}, "fetch.max.wait.ms: 'long' is not a whole number"),
        ({"bootstrap_servers": "a b"}, "bootstrap.servers: 'a b' is not of the form HOST:PORT"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_sentence(
    broker: BrokerProcess, topic: str, given: dict[str, object], sentence: str
) -> None:
    create(broker.address, topic)
    with pytest.raises(ReadError) as raised:
        lamina.arrow.read(**{"topic": topic, "bootstrap_servers": broker.address, **given})  # type: ignore[arg-type]
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_start_behind_the_end_reads_nothing_and_is_told(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(broker.address, topic)
    assert lamina.arrow.read(topic, start=99, bootstrap_servers=broker.address).read_all().num_rows == 0
    assert f"{topic}-0 is read from offset 99 to 0: nothing is there" in caplog.messages


def test_a_broker_that_is_not_there_is_told_in_one_sentence() -> None:
    short = {"default.api.timeout.ms": "50"}
    with pytest.raises(NetworkError, match=r"^127.0.0.1:1 cannot be reached .*tried in vain for 50 ms"):
        lamina.arrow.read("t", bootstrap_servers="127.0.0.1:1", properties=short)


def test_a_corrupt_batch_is_told_with_its_partition(own_broker: Start) -> None:
    broker = own_broker()
    create(broker.address, "t")
    produce(broker.address, "t", numbered(3))
    (segment,) = broker.log_dir.glob("t-0/*.log")
    with segment.open("r+b") as file:
        file.seek(80)
        file.write(b"\xff")
    with pytest.raises(KafkaError, match=r"^t-0"):
        rows(broker, "t", "value")
