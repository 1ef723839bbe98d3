"""``lamina bench`` against a real broker."""

import signal

from tests.broker.process import BrokerProcess, eventually
from tests.cli.records import Records
from tests.cli.running import started


def temporary(records: Records) -> set[str]:
    return {name for name in records.topics() if name.startswith("lamina-bench-")}


def test_sending_is_measured_on_a_topic_that_is_removed(records: Records) -> None:
    options = ("--records", "500", "--size", "50", "--compression", "lz4", "--acks", "1", "--json")
    (row,) = records.lamina("bench", "produce", *options, "--bootstrap-server", records.address).objects
    assert (row["records"], row["bytes"], row["temporary"]) == (500, 25_000, True)
    latency = row["latency_ms"]
    assert 0 <= latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p99_9"] <= latency["max"]
    assert row["topic"] not in records.topics()


def test_reading_is_measured(records: Records) -> None:
    outcome = records.lamina("bench", "consume", "--records", "500", "--bootstrap-server", records.address)
    assert outcome.status == 0
    shown = dict(line.rsplit("  ", 1) for line in outcome.out.splitlines()[1:-1])
    assert shown["records".ljust(18)] == "500"
    assert "not the limit of the cluster" in outcome.out


def test_a_topic_that_is_named_is_used_and_left(records: Records, topic: str) -> None:
    bench = ("bench", "produce", "--topic", topic, "--seconds", "0.2", "--rate", "100", "--json")
    assert records.lamina(*bench, "--bootstrap-server", records.address).status == 1
    records.make(topic)
    (row,) = records.lamina(*bench, "--bootstrap-server", records.address).objects
    assert 1 <= row["records"] <= 21
    assert records.end_offset(topic) == row["records"] + 1
    (row,) = records.lamina(
        "bench", "consume", "--topic", topic, "--json", "--bootstrap-server", records.address
    ).objects
    assert row["records"] == records.end_offset(topic)


def test_an_interrupt_tells_and_removes_the_topic(broker: BrokerProcess, records: Records) -> None:
    with started(
        "bench", "produce", "--seconds", "60", "--rate", "10", "--bootstrap-server", broker.address
    ) as process:
        eventually(lambda: bool(temporary(records)))
        (name,) = temporary(records)
        eventually(lambda: records.end_offset(name) > 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stdout is not None
        assert b"records/s" in process.stdout.read()
    assert name not in records.topics()


def test_partitions_are_of_a_temporary_topic_only(records: Records, topic: str) -> None:
    bench = ("bench", "consume", "--partitions", "2", "--bootstrap-server", records.address)
    assert records.lamina(*bench, "--topic", topic).status == 2
    (row,) = records.lamina(*bench, "--records", "10", "--json").objects
    assert row["records"] == 10
