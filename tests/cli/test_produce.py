"""``lamina produce`` against a real broker."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess, eventually
from tests.cli.records import Records
from tests.cli.running import Lamina, started
from tests.cli.terminal import typed_on_terminal

# What becomes a record


def test_a_line_is_a_value_and_only_its_newline_is_left_out(records: Records, topic: str) -> None:
    records.make(topic)
    outcome = records.produce(topic, b"one\r\n\n\x00\xff\nlast")
    assert (outcome.status, outcome.out) == (0, "")
    rows = records.rows(topic)
    assert [row["value"] for row in rows] == ["one\r", "", "AP8=", "last"]
    assert [row["key"] for row in rows] == [None] * 4


def test_standard_input_is_read_when_no_file_is_named(broker: BrokerProcess, records: Records, topic: str) -> None:
    records.make(topic)
    with started("produce", topic, "--json", "--bootstrap-server", broker.address) as process:
        out, err = process.communicate(b"a\nb", timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["records"] == 2
    assert [row["value"] for row in records.rows(topic)] == ["a", "b"]


def test_keys_headers_partition_and_time(records: Records, topic: str) -> None:
    records.make(topic, 3)
    options = ("--key-separator", "\\t", "--header", "a=b=c", "--header", "a=", "--partition", "2")
    assert records.produce(topic, b"k\tv\tw\n", *options, "--timestamp", "2026-01-31T12:00Z").status == 0
    (row,) = records.rows(topic)
    assert (row["partition"], row["key"], row["value"], row["time"]) == (2, "k", "v\tw", "2026-01-31T12:00:00.000Z")
    assert [(each["key"], each["value"]) for each in row["headers"]] == [("a", "b=c"), ("a", "")]


def test_a_key_goes_where_java_clients_send_it(records: Records, topic: str) -> None:
    """Kafka's own tests know murmur2 of these: 21 is -973932308, foobar is -790332482."""
    records.make(topic, 100)
    records.produce(topic, b"21:\nfoobar:\n", "--key-separator", ":")
    found = {row["key"]: row["partition"] for row in records.rows(topic)}
    assert found == {"21": (-973932308 & 0x7FFFFFFF) % 100, "foobar": (-790332482 & 0x7FFFFFFF) % 100}


def test_tombstones(records: Records, topic: str) -> None:
    records.make(topic)
    assert records.produce(topic, b"k:\nl:1\n", "--key-separator", ":", "--empty-is-tombstone").status == 0
    outcome = records.lamina("produce", topic, "--tombstone", "m", "--bootstrap-server", records.address)
    assert outcome.status == 0
    assert [(row["key"], row["value"], row["value_encoding"]) for row in records.rows(topic)] == [
        ("k", None, None),
        ("l", "1", "text"),
        ("m", None, None),
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(records: Records, topic: str, codec: str) -> None:
    records.make(topic)
    assert records.produce(topic, b"x\n" * 1000, "--compression", codec).status == 0
    assert len(records.rows(topic)) == 1000


def test_a_large_record_fits_where_the_topic_lets_it(records: Records, topic: str) -> None:
    records.make(topic, max_message_bytes="5000000")
    assert records.produce(topic, b"x" * 4_000_000).status == 0
    assert len(records.rows(topic)[0]["value"]) == 4_000_000


def test_batches_are_no_larger_than_the_topic_takes(records: Records, topic: str) -> None:
    records.make(topic, max_message_bytes="2000")
    assert records.produce(topic, b"x" * 500 + b"\n" + (b"x" * 500 + b"\n") * 99).status == 0
    assert records.end_offset(topic) == 100


# What is told


def test_one_plain_line_tells_what_was_delivered_and_where(records: Records, topic: str) -> None:
    records.make(topic)
    records.produce(topic, b"one\n")
    assert records.produce(topic, b"one\n").err == f"Delivered 1 record to {topic}: partition 0 offset 1\n"
    assert records.produce(topic, b"2\n3\n").err == f"Delivered 2 records to {topic}: partition 0 offsets 2-3\n"


def test_only_of_many_records_size_and_rate_are_told(records: Records, topic: str) -> None:
    records.make(topic)
    (line,) = records.produce(topic, b"x\n" * 1000).err.splitlines()
    assert line.startswith(f"Delivered 1,000 records (1.0 kB) to {topic} in ")
    assert "records/s" in line
    assert line.endswith(": partition 0 offsets 0-999")


def test_no_records_are_delivered_from_empty_input(records: Records, topic: str) -> None:
    records.make(topic)
    outcome = records.produce(topic, b"")
    assert (outcome.status, outcome.err) == (0, f"Delivered 0 records to {topic}\n")


def test_the_summary_as_json(records: Records, topic: str) -> None:
    records.make(topic, 2)
    (row,) = records.produce(topic, b"a\nb\n", "--partition", "1", "--json", "--rate", "1000").objects
    assert row.pop("seconds") > 0
    assert row.pop("records_per_second") > 0
    assert row.pop("bytes_per_second") > 0
    assert row == {
        "type": "summary",
        "topic": topic,
        "records": 2,
        "bytes": 2,
        "not_delivered": 0,
        "partitions": [{"partition": 1, "records": 2, "start_offset": 0, "end_offset": 2}],
    }


def test_without_acknowledgements_no_offsets_are_known(records: Records, topic: str) -> None:
    records.make(topic)
    (row,) = records.produce(topic, b"a\n", "--acks", "0", "--json").objects
    assert row["partitions"] == [{"partition": 0, "records": 1, "start_offset": None, "end_offset": None}]


# What is refused


def test_a_topic_is_never_made_by_accident(records: Records, topic: str) -> None:
    outcome = records.produce(topic, b"x\n")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert "--create" in outcome.err
    assert topic not in records.topics()


def test_a_topic_is_made_when_that_is_asked_for_and_said(records: Records, topic: str) -> None:
    outcome = records.produce(topic, b"x\n", "--create")
    assert outcome.status == 0
    assert outcome.err.splitlines()[0] == f"Created topic {topic}."
    assert "Created" not in records.produce(topic, b"x\n", "--create").err


def test_a_line_without_separator_is_named_and_what_came_before_is_sent(records: Records, topic: str) -> None:
    records.make(topic)
    outcome = records.produce(topic, b"a:1\nb:2\nc3\nd:4\n", "--key-separator", ":")
    assert outcome.status == 2
    assert outcome.err.startswith("lamina: line 3 of ")
    assert [row["key"] for row in records.rows(topic)] == ["a", "b"]
    assert records.produce(topic, b"c3\n", "--key-separator", ":", "--key-optional").status == 0


def test_lines_are_counted_in_their_own_file(records: Records, topic: str, tmp_path: Path) -> None:
    records.make(topic)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text('{"value":"1"}\n\n{"value":"2"}\n')
    second.write_text('{"value":"3"}\n{"value":4}\n')
    outcome = records.produce(topic, b"", "--file", str(first), "--file", str(second), "--format", "json")
    assert outcome.status == 2
    assert f"line 2 of {second}: value is not a string" in outcome.err
    assert [row["value"] for row in records.rows(topic)] == ["1", "2", "3"]


def test_a_record_that_is_not_delivered_is_named(records: Records, topic: str) -> None:
    records.make(topic)
    lines = b'{"value":"1"}\n{"value":"2"}\n{"value":"3","partition":9}\n'
    outcome = records.produce(topic, lines, "--format", "json")
    assert outcome.status == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith("lamina: line 3 of ")
    assert "was not delivered" in last
    assert last.endswith("delivered: 2 records")


def test_a_compacted_topic_needs_keys(records: Records, topic: str) -> None:
    records.make(topic, cleanup_policy="compact,delete")
    outcome = records.produce(topic, b"k:1\nno key\n", "--key-separator", ":", "--key-optional")
    assert outcome.status == 2
    why, told = outcome.err.splitlines()
    assert why.startswith("lamina: line 2 of ")
    needs_keys = f"it has no key; topic {topic} is compacted, so every record needs one"
    assert why.endswith(f": {needs_keys}: write the line as KEY:VALUE")
    assert told == f"Delivered 1 record to {topic}: partition 0 offset 0"
    outcome = records.produce(topic, b'{"value":"1"}\n', "--format", "json")
    assert outcome.status == 2
    assert f'{needs_keys}: give the object a "key"' in outcome.err
    outcome = records.produce(topic, b"no key\n")
    assert f"{needs_keys}: give --key-separator : and lines of the form KEY:VALUE" in outcome.err
    assert "KEY:VALUE" in records.produce(topic, b"no key\n", "--key-separator", ":").err
    assert records.lamina("produce", topic, "--tombstone", "k", "--bootstrap-server", records.address).status == 0


def test_a_broker_that_refuses_is_quoted(records: Records, topic: str) -> None:
    records.make(topic, message_timestamp_before_max_ms="1000")
    outcome = records.produce(topic, b"late\n", "--timestamp", "2001-01-31")
    assert outcome.status == 1
    assert "line 1 of " in outcome.err
    assert "delivered: 0 records" in outcome.err


def test_a_line_without_end_is_refused_before_it_is_read(broker: BrokerProcess, records: Records, topic: str) -> None:
    records.make(topic)
    with started("produce", topic, "--bootstrap-server", broker.address) as process:
        assert process.stdin is not None
        process.stdin.write(b"fine\n")
        with pytest.raises(BrokenPipeError):
            process.stdin.write(bytes(200 << 20))
        assert process.wait(60) == 2
        assert process.stderr is not None
        assert b"line 2 of standard input is longer than the 1048588 bytes" in process.stderr.read()
    assert records.end_offset(topic) == 1


def test_what_was_read_before_a_file_that_cannot_be_is_sent(records: Records, topic: str, tmp_path: Path) -> None:
    records.make(topic)
    for bad, why in ((tmp_path, "is a directory"), (tmp_path / "missing", "no such file")):
        outcome = records.produce(topic, b"x\n", "--file", str(bad))
        assert outcome.status == 2
        assert f"lamina: {bad}: {why}" in outcome.err
        assert outcome.err.splitlines()[-1].startswith("Delivered 1 record ")
    assert records.end_offset(topic) == 2


@pytest.mark.parametrize(
    "options",
    [
        ("--key-optional",),
        ("--key-separator", ""),
        ("--key-separator", "\\q"),
        ("--key-separator", ":", "--format", "json"),
        ("--tombstone", "k", "--file", "x"),
        ("--idempotent", "--acks", "1"),
        ("--header", "x"),
        ("--timestamp", "soon"),
        ("--timestamp", "0"),
        ("--rate", "0"),
        ("--file", "/no/such/file"),
    ],
)
def test_a_wrong_command_line_ends_with_status_2(
    lamina: Lamina, records: Records, topic: str, options: tuple[str, ...]
) -> None:
    records.make(topic)
    assert lamina("produce", topic, *options, "--bootstrap-server", records.address).status == 2


def test_a_partition_that_is_not_there(records: Records, topic: str) -> None:
    records.make(topic, 2)
    outcome = records.produce(topic, b"x\n", "--partition", "2")
    assert outcome.status == 1
    assert "has no partition 2; it has 2, counted from 0" in outcome.err


# Endings


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_sends_what_was_read_and_tells(
    broker: BrokerProcess, records: Records, topic: str, sent: signal.Signals
) -> None:
    records.make(topic)
    with started("produce", topic, "--bootstrap-server", broker.address) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\nthre")
        process.stdin.flush()
        eventually(lambda: records.end_offset(topic) == 2)
        process.send_signal(sent)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert b"Delivered 2 records " in process.stderr.read().splitlines()[-1]


def test_a_broker_that_dies_fails_the_records_on_their_way(
    own_broker: Callable[..., BrokerProcess], lamina: Lamina, topic: str, tmp_path: Path
) -> None:
    broker = own_broker()
    records = Records(lamina, broker.address, tmp_path)
    records.make(topic)
    with started("produce", topic, "--timeout", "5", "--bootstrap-server", broker.address) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        eventually(lambda: records.end_offset(topic) == 1)
        broker.kill()
        process.stdin.write(b"two\n")
        process.stdin.flush()
        assert process.wait(60) == 1
        assert process.stderr is not None
        last = process.stderr.read().splitlines()[-1]
        assert last.startswith(b"lamina: line 2 of standard input was not delivered")
        assert last.endswith(b"delivered: 1 record")


def test_who_types_is_told_how_and_is_not_written_over(broker: BrokerProcess, records: Records, topic: str) -> None:
    records.make(topic)
    shown = typed_on_terminal("produce", topic, "--bootstrap-server", broker.address, lines=("one", "two"))
    assert shown.replace("\r\n", "\n").startswith("Type one record a line; Ctrl-D ends.\n")
    assert "\x1b[K" not in shown
    assert f"Delivered 2 records to {topic}" in shown
    assert records.consume(topic).out == "one\ntwo\n"
