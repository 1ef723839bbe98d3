"""Brokers log to files, and they and all below them are gone after a run."""

import subprocess
from pathlib import Path

import pytest

from bench.family import families_of, parents
from bench.subjects import kill_all
from tests.bench.idle_broker import IdleBroker
from tests.peers.kafka import Kafka, KafkaFailedError


class BrokerWithChild(IdleBroker):
    """A process with another below it, which outlives it if nobody sees to that."""

    def launch(self) -> None:
        self._process = subprocess.Popen(
            ["sh", "-c", "sleep 1000 & echo ready; wait"], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self.is_running = True

    @property
    def process_ids(self) -> tuple[int, ...]:
        return (self._process.pid,)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self.is_running = False


def test_what_is_below_a_broker_goes_with_it() -> None:
    broker = BrokerWithChild("broker", [])
    broker.launch()
    family = families_of(broker.process_ids)
    assert len(family) == 2
    kill_all([broker])
    assert not parents().keys() & set(family)


def kafka_that_runs(script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kafka:
    """With a shell script in the place of Java."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(java.parent), prepend=":")
    monkeypatch.setattr("tests.peers.kafka.jars", lambda: "")
    return Kafka(tmp_path / "kafka")


def test_a_kafka_logs_to_a_file_that_is_looked_at_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kafka = kafka_that_runs("echo one; echo two >&2; printf half; exec sleep 1000", monkeypatch, tmp_path)
    assert kafka.lines_since(kafka.mark()) == []
    mark = kafka.mark()
    kafka.launch()
    try:
        assert kafka.wait_for_line("tw", since=mark, seconds=60) == "two"
        assert (tmp_path / "kafka" / "log.txt").read_text().startswith("one\ntwo\n")
        assert kafka.lines_since(mark) == ["one", "two"]
        assert kafka.lines_since(kafka.mark()) == []
    finally:
        kafka.kill()


def test_a_kafka_that_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kafka = kafka_that_runs("echo no heap", monkeypatch, tmp_path)
    mark = kafka.mark()
    kafka.launch()
    with pytest.raises(KafkaFailedError, match=r"ended[^\n]*\n[^\n]*no heap"):
        kafka.wait_for_line("started", since=mark, seconds=60)
    kafka.kill()
