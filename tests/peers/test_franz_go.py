"""franz-go, the Go client, against Lamina: the program in `go/` does the work and says what it saw."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
}


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    with Lamina(tmp_path_factory.mktemp("lamina"), SETTINGS) as broker:
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()


def test_franz_go_makes_a_topic_writes_reads_deletes_and_shares_partitions_in_groups(
    franz_go: Path, lamina: Lamina
) -> None:
    finished = subprocess.run([franz_go, lamina.bootstrap], capture_output=True, text=True, timeout=180)
    assert finished.returncode == 0, finished.stderr
    steps = {line["step"]: line["result"] for line in map(json.loads, finished.stdout.splitlines())}
    for protocol in ("eager", "cooperative", "consumer"):
        assert steps.pop(f"{protocol} groups") == {"read": 720, "faults": None}
    assert steps == {"admin": "1048576", "produce": 500, "consume": 500, "delete": False}
