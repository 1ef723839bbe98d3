"""``lamina produce``, ``consume`` and ``bench`` against a real Kafka, transactions and compaction among its logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.cli.records import Records
from tests.cli.running import Lamina as Command
from tests.peers.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with Kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def records(kafka: Kafka, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Records:
    return Records(Command(capsys), kafka.bootstrap, tmp_path)


def test_what_consume_prints_produce_takes(records: Records) -> None:
    records.make("first", 2)
    records.make("second", 2)
    lines: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "partition": 1, "timestamp": 1_700_000_000_000},
        {"key": "/w==", "key_encoding": "base64", "value": None, "headers": [{"key": "ü", "value": None}]},
        {"key": None, "value": ""},
    ]
    data = "".join(json.dumps({"partition": 0, **line}) + "\n" for line in lines).encode()
    assert records.produce("first", data, "--format", "json", "--idempotent").status == 0
    printed = sorted(records.consume("first", "--json").out.splitlines())
    assert records.produce("second", "\n".join(printed).encode(), "--format", "json").status == 0
    copied = sorted(line.replace("second", "first") for line in records.consume("second", "--json").out.splitlines())
    assert copied == printed
    assert len(printed) == 3


def test_places_counts_and_times(records: Records) -> None:
    records.make("numbers")
    lines = [{"value": str(n), "timestamp": 1_700_000_000_000 + 1000 * n} for n in range(10)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert records.produce("numbers", data, "--format", "json", "--compression", "zstd").status == 0
    for options, values in (
        (["--from", "-3"], "789"),
        (["--from", "2", "--to", "4"], "23"),
        (["--from", "@1700000007500", "-f", "--count", "2"], "89"),
        (["--to", "2023-11-14T22:13:22Z"], "01"),
        (["--from", "50"], ""),
    ):
        outcome = records.consume("numbers", "--format", "raw", *options)
        assert (outcome.status, outcome.out) == (0, values), options


def test_transactions_leave_gaps_and_a_marker_at_the_end(records: Records) -> None:
    records.make("moved")
    producer = Producer({"bootstrap.servers": records.address, "transactional.id": "mover"})
    producer.init_transactions(30)
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("moved", value)
        producer.flush(30)
        end(30)
    outcome = records.consume("moved")
    assert outcome.out.split() == ["aborted", "committed"]
    assert outcome.err.endswith("partition 0 offsets 0-3 (2 offsets without a record: 1, 3)\n")
    committed = records.consume("moved", "--isolation", "read_committed")
    assert committed.out.split() == ["committed"]
    assert committed.err.endswith("offsets 0-3 (3 offsets without a record: 0-1, 3)\n")


def test_no_topic_is_made_by_accident(records: Records) -> None:
    assert records.consume("nowhere").status == 1
    assert records.produce("nowhere", b"x\n").status == 1
    assert "nowhere" not in records.topics()
    assert records.produce("nowhere", b"x\n", "--create").status == 0
    assert records.consume("nowhere").out == "x\n"


def test_a_broker_that_refuses_is_quoted(records: Records) -> None:
    records.make("timely", message_timestamp_before_max_ms="1000")
    outcome = records.produce("timely", b"late\n", "--timestamp", "1000000000000")
    assert outcome.status == 1
    assert "line 1 of " in outcome.err


def test_a_compacted_topic_needs_keys(records: Records) -> None:
    records.make("compacted", cleanup_policy="compact")
    outcome = records.produce("compacted", b"no key\n")
    assert outcome.status == 2
    assert "topic compacted is compacted, so every record needs one" in outcome.err


@pytest.mark.parametrize("what", ["produce", "consume"])
def test_bench(records: Records, what: str) -> None:
    bench = ("bench", what, "--records", "1000", "--json", "--bootstrap-server", records.address)
    (row,) = records.lamina(*bench).objects
    assert row["records"] == 1000
    assert row["topic"] not in records.topics()
