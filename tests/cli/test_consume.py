"""``lamina consume`` against a real broker."""

import json
import signal
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.client.cluster import answer_of
from lamina.log.directory import LogDirectory
from lamina.log.partition_log import PartitionLog
from lamina.records.batch import read_header
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig
from tests.broker.process import BrokerProcess, eventually
from tests.broker.raw import RawClient
from tests.cli.records import Records
from tests.cli.running import Lamina, run_process, started
from tests.cli.terminal import shown_on_terminal

NOW_MS = 1_700_000_000_000


@pytest.fixture
def ten(records: Records, topic: str) -> str:
    """A topic with the numbers 0 to 9 in one partition, a second apart."""
    records.make(topic)
    lines = [{"key": f"k{n}", "value": str(n), "timestamp": NOW_MS + 1000 * n} for n in range(10)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert records.produce(topic, data, "--format", "json").status == 0
    return topic


# What is printed


def test_values_from_the_earliest_to_the_end(records: Records, ten: str) -> None:
    outcome = records.consume(ten)
    assert outcome.status == 0
    assert outcome.out == "".join(f"{n}\n" for n in range(10))
    assert outcome.err == f"Read 10 records from {ten}: partition 0 offsets 0-9\n"


def test_as_json(records: Records, ten: str) -> None:
    outcome = records.consume(ten, "--json", "--count", "1")
    assert outcome.objects == [
        {
            "type": "record",
            "topic": ten,
            "partition": 0,
            "offset": 0,
            "timestamp": NOW_MS,
            "time": "2023-11-14T22:13:20.000Z",
            "timestamp_type": "create",
            "key": "k0",
            "key_encoding": "text",
            "value": "0",
            "value_encoding": "text",
            "headers": [],
            "leader_epoch": 0,
        }
    ]
    summary = json.loads(outcome.err)
    assert summary.pop("seconds") >= 0
    read = {"partition": 0, "records": 1, "start_offset": 0, "end_offset": 1, "missing": 0, "gap_count": 0, "gaps": []}
    assert summary == {"type": "summary", "topic": ten, "records": 1, "bytes": 3, "missing": 0, "partitions": [read]}
    assert records.consume(ten, "--format", "json").out == records.consume(ten, "--json").out


def test_templates_and_bare_bytes(records: Records, ten: str) -> None:
    shown = records.consume(ten, "--count", "1", "--format", r"%p/%o %k\t%v %t %T %h%%").out
    assert shown == f"0/0 k0\t0 {NOW_MS} 2023-11-14T22:13:20.000Z %\n"
    assert records.consume(ten, "--format", "raw").out == "0123456789"


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (["--from", "7"], "789"),
        (["--from", "-2"], "89"),
        (["--from", "-200", "--to", "2"], "01"),
        (["--to", "-8"], "01"),
        (["--from", "3", "--to", "5"], "34"),
        (["--from", "5", "--to", "3"], ""),
        (["--from", "latest"], ""),
        (["--from", "50"], ""),
        (["--from", "8", "--to", "50"], "89"),
        (["--from", f"@{NOW_MS + 6500}"], "789"),
        (["--from", "2023-11-14T22:13:27Z", "--to", "2023-11-14T22:13:28Z"], "7"),
        (["--from", "-1s"], ""),
        (["--count", "3"], "012"),
        (["--count", "0"], ""),
        (["-f", "--count", "3"], "012"),
        (["-f", "--to", "4"], "0123"),
    ],
)
def test_which_records(records: Records, ten: str, options: list[str], values: str) -> None:
    outcome = records.consume(ten, *options, "--format", "raw")
    assert (outcome.status, outcome.out) == (0, values)


def test_partitions_are_each_in_order_and_can_be_chosen(records: Records, topic: str) -> None:
    records.make(topic, 4)
    for partition in (0, 1, 3):
        records.produce(topic, b"".join(b"%d\n" % n for n in range(100)), "--partition", str(partition))
    rows = records.rows(topic)
    for partition in (0, 1, 3):
        assert [int(row["value"]) for row in rows if row["partition"] == partition] == list(range(100))
    assert len(rows) == 300
    chosen = records.consume(topic, "--partition", "3", "--partition", "2", "--json")
    assert {row["partition"] for row in chosen.objects} == {3}
    assert [each["partition"] for each in json.loads(chosen.err)["partitions"]] == [2, 3]


def test_an_empty_topic(records: Records, topic: str) -> None:
    records.make(topic, 3)
    outcome = records.consume(topic)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err.startswith("Read 0 records from ")


# On a terminal


def test_a_terminal_is_shown_tombstones_and_escapes(records: Records, topic: str) -> None:
    records.make(topic)
    lines = (
        b'{"key":"k","value":null}\n{"value":null}\n'
        b'{"key":"AP8=","key_encoding":"base64","value":"G1tCAA==","value_encoding":"base64"}\n'
        b'{"value":"two\\nlines\\u00e9"}\n'
    )
    assert records.produce(topic, lines, "--format", "json").status == 0
    where = ("--bootstrap-server", records.address)
    assert shown_on_terminal("consume", topic, *where) == "(tombstone)\n(null)\n\\x1b[B\\x00\ntwo\nlines\u00e9\n"
    shown = shown_on_terminal("consume", topic, "--format", "%o %k", *where)
    assert shown == "0 k\n1 (null)\n2 \\x00\\xff\n3 (null)\n"


def test_a_pipe_gets_every_byte_as_it_is(records: Records, topic: str) -> None:
    records.make(topic)
    records.produce(
        topic, b'{"key":"k","value":null}\n{"value":"G1tCAA==","value_encoding":"base64"}\n', "--format", "json"
    )
    with started("consume", topic, "--bootstrap-server", records.address) as process:
        out, _ = process.communicate(timeout=60)
    assert out == b"\n\x1b[B\0\n"


# A round trip

_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
_bytes = st.none() | st.binary(max_size=20) | _text.map(str.encode)
_records = st.tuples(_bytes, _bytes, st.lists(st.tuples(_text, _bytes), max_size=3), st.integers(1, 2**40))
_names = (f"round-trip-{number}" for number in count())


def encoded(data: bytes | None) -> tuple[str | None, str | None]:
    return (None, None) if data is None else (b64encode(data).decode(), "base64")


def line_of(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], time_ms: int) -> str:
    row: dict[str, Any] = {"timestamp": time_ms, "partition": 0, "headers": []}
    row["key"], row["key_encoding"] = encoded(key)
    row["value"], row["value_encoding"] = encoded(value)
    for name, content in headers:
        shown, encoding = encoded(content)
        row["headers"].append({"key": name, "value": shown, "value_encoding": encoding})
    return json.dumps(row)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_records, min_size=1, max_size=20))
def test_what_consume_prints_produce_takes(records: Records, given_records: list[Any]) -> None:
    first, second = records.make(next(_names)), records.make(next(_names))
    data = "".join(line_of(*each) + "\n" for each in given_records).encode()
    assert records.produce(first, data, "--format", "json").status == 0
    printed = records.consume(first, "--format", "json").out
    assert records.produce(second, printed.encode(), "--format", "json").status == 0
    assert records.consume(second, "--format", "json").out == printed.replace(first, second)
    for row, (key, value, headers, time_ms) in zip(records.rows(first), given_records, strict=True):
        assert line_of(key, value, headers, time_ms) == line_of(
            plain(row, "key"),
            plain(row, "value"),
            [(plain(each, "key").decode(), plain(each, "value")) for each in row["headers"]],  # type: ignore[union-attr]
            row["timestamp"],
        )


def plain(row: dict[str, Any], name: str) -> bytes | None:
    value: str | None = row[name]
    if value is None:
        return None
    return b64decode(value) if row[f"{name}_encoding"] == "base64" else value.encode()


# Offsets without records


def append(log: PartitionLog, batch: bytearray) -> None:
    log.append(batch, read_header(batch), 0, NOW_MS)


def transaction(log: PartitionLog, producer_id: int, end: ControlType) -> None:
    offset = log.log_end_offset
    written = [Record(offset, NOW_MS, b"k", end.name.lower().encode(), ())]
    append(
        log,
        build_batch(written, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True),
    )
    append(
        log,
        build_marker(
            end, offset=0, timestamp_ms=NOW_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
        ),
    )


@pytest.fixture
def with_gaps(lamina: Lamina, tmp_path: Path) -> Iterator[Records]:
    """A broker that took in a log as compaction and transactions leave it.

    ``gaps``: records at 0, 1 and 5 of a compacted batch, an aborted one at 6 and its marker, a committed one at 8 and
    its marker, which is the last.
    """
    source = LogDirectory.open(str(tmp_path / "source"), node_id=1, cluster_id="source")
    log = source.create_partition("gaps", 0, bytes(range(16)), LogConfig(), NOW_MS)
    append(log, build_batch([Record(offset, NOW_MS, b"k", b"%d" % offset, ()) for offset in (0, 1, 5)]))
    transaction(log, 8, ControlType.ABORT)
    transaction(log, 9, ControlType.COMMIT)
    source.write_high_watermarks({("gaps", 0): log.log_end_offset})
    source.close()
    broker = BrokerProcess(tmp_path / "data")
    with broker:
        pass
    assert lamina("adopt", tmp_path / "source", "--data-dir", broker.data_dir).status == 0
    with broker:
        yield Records(lamina, broker.address, tmp_path)


def test_gaps_are_told_and_a_marker_at_the_end_ends_it(with_gaps: Records) -> None:
    outcome = with_gaps.consume("gaps")
    assert outcome.status == 0, outcome.err
    assert outcome.out.split() == ["0", "1", "5", "abort", "commit"]
    assert outcome.err.endswith(": partition 0 offsets 0-9 (5 offsets without a record: 2-4, 7, 9)\n")
    committed = with_gaps.consume("gaps", "--isolation", "read_committed", "--json")
    assert [row["value"] for row in committed.objects] == ["0", "1", "5", "commit"]
    (read,) = json.loads(committed.err)["partitions"]
    assert (read["missing"], read["gap_count"]) == (6, 3)
    assert read["gaps"] == [
        {"start_offset": 2, "end_offset": 5},
        {"start_offset": 6, "end_offset": 8},
        {"start_offset": 9, "end_offset": 10},
    ]
    inside = with_gaps.consume("gaps", "--to", "4")
    assert inside.out.split() == ["0", "1"]
    assert inside.err.endswith("offsets 0-3 (2 offsets without a record: 2-3)\n")
    assert with_gaps.consume("gaps", "--from", "9").err.endswith("offset 9 (1 offset without a record: 9)\n")


def test_an_offset_that_is_gone_is_said(records: Records, ten: str) -> None:
    admin = records.admin()
    tp = TopicPartition(ten, 0, 4)
    answer_of(admin.delete_records([tp])[tp])
    outcome = records.consume(ten, "--from", "2", "--format", "raw")
    assert (outcome.status, outcome.out) == (0, "456789")
    assert outcome.err.splitlines()[0] == "lamina: partition 0 begins at offset 4: earlier records are gone"
    assert "begins at" not in records.consume(ten).err


def test_an_offset_that_is_not_there_yet_is_said(records: Records, ten: str) -> None:
    outcome = records.consume(ten, "--from", "99", "--format", "raw")
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err.splitlines()[0] == "lamina: nothing is at offset 99 yet: partition 0 ends at 10"
    assert "yet" not in records.consume(ten, "--from", "10").err


# What is refused


def test_a_topic_that_is_not_there_is_not_made(records: Records, topic: str) -> None:
    outcome = records.consume(topic)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.count("\n") == 1
    assert f"there is no topic '{topic}'; `lamina topics list` shows all topics" in outcome.err
    assert topic not in records.topics()
    assert records.consume("no topic/name").status == 1


def test_a_partition_that_is_not_there(records: Records, ten: str) -> None:
    outcome = records.consume(ten, "--partition", "1")
    assert outcome.status == 1
    assert "has no partition 1; it has 1, counted from 0" in outcome.err


@pytest.mark.parametrize("options", [["--from", "soon"], ["--format", "xml"], ["--json", "--format", "raw"]])
def test_a_wrong_command_line_ends_with_status_2(records: Records, ten: str, options: list[str]) -> None:
    assert records.consume(ten, *options).status == 2


def test_damaged_records_are_one_sentence(
    own_broker: Callable[..., BrokerProcess], lamina: Lamina, topic: str, tmp_path: Path
) -> None:
    broker = own_broker()
    records = Records(lamina, broker.address, tmp_path)
    records.make(topic)
    records.produce(topic, b"good\n")
    records.produce(topic, b"evil\n")
    broker.stop()
    file = broker.log_dir / f"{topic}-0/00000000000000000000.log"
    file.write_bytes(file.read_bytes().replace(b"evil", b"EVIL"))
    broker.start()
    outcome = lamina("consume", topic, "--bootstrap-server", broker.address)
    assert (outcome.status, outcome.out) == (1, "good\n")
    assert "partition 0 at offset 1: " in outcome.err.splitlines()[-1]


def test_a_header_that_the_client_cannot_read_is_one_sentence(
    broker: BrokerProcess, records: Records, topic: str
) -> None:
    with RawClient(broker) as client:
        client.create_topic(topic)
        client.produce(topic, bytes(build_batch([Record(0, NOW_MS, None, b"v", ((b"\xff", b""),))])))
    outcome = records.consume(topic, "--json")
    assert outcome.status == 1
    assert "partition 0 at offset 0: the key of a header is not UTF-8" in outcome.err
    assert records.consume(topic).out == "v\n"


def test_such_a_header_behind_many_good_ones_is_one_sentence_too(
    broker: BrokerProcess, records: Records, topic: str
) -> None:
    good = [Record(n, NOW_MS, None, b"v", ((b"k", b""),)) for n in range(1000)]
    with RawClient(broker) as client:
        client.create_topic(topic)
        client.produce(topic, bytes(build_batch(good)))
        client.produce(topic, bytes(build_batch([Record(0, NOW_MS, None, b"v", ((b"\xff", b""),))])))
    outcome = run_process("consume", topic, "--json", "--bootstrap-server", broker.address)
    assert outcome.status == 1
    assert "partition 0 at offset 1000: the key of a header is not UTF-8" in outcome.err


# Endings


def test_following_waits_for_what_comes_and_an_interrupt_ends_it(
    broker: BrokerProcess, records: Records, topic: str
) -> None:
    records.make(topic)
    records.produce(topic, b"one\n")
    with started("consume", topic, "-f", "--bootstrap-server", broker.address) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        records.produce(topic, b"two\n")
        assert process.stdout.readline() == b"two\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read().rstrip().endswith(b"partition 0 offsets 0-1")


def test_a_reader_that_leaves_ends_it_quietly(broker: BrokerProcess, records: Records, topic: str) -> None:
    records.make(topic)
    records.produce(topic, (b"x" * 200 + b"\n") * 20_000)
    with started("consume", topic, "--bootstrap-server", broker.address) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def test_a_broker_that_does_not_come_back_is_given_up(
    own_broker: Callable[..., BrokerProcess], lamina: Lamina, topic: str, tmp_path: Path
) -> None:
    broker = own_broker()
    records = Records(lamina, broker.address, tmp_path)
    records.make(topic)
    records.produce(topic, b"one\n")
    with started("consume", topic, "-f", "--timeout", "3", "--bootstrap-server", broker.address) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        broker.kill()
        assert process.wait(60) == 3
        last = process.stderr.read().splitlines()
        assert last[-1].startswith(b"lamina: no broker answers at ")
        assert last[-2].startswith(b"Read 1 record ")


def test_a_topic_that_is_deleted_meanwhile_ends_it(broker: BrokerProcess, records: Records, topic: str) -> None:
    records.make(topic)
    records.produce(topic, b"one\n")
    with started("consume", topic, "-f", "--timeout", "5", "--bootstrap-server", broker.address) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        admin = records.admin()
        answer_of(admin.delete_topics([topic])[topic])
        assert process.wait(60) == 1
        assert process.stderr.read().splitlines()[-1].startswith(b"lamina: ")
    eventually(lambda: topic not in records.topics())
