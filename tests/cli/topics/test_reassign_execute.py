"""What is shown of a plan that was begun and is not waited for."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from lamina.cli.outcome import FINE
from lamina.cli.reassignment import following
from lamina.client.cluster import Cluster
from lamina.client.layout import Layout, Placed
from lamina.client.reassignments import UnderWay

KEY = ("t", 0)
EXECUTING = import_module("lamina.cli.topics.reassign.execute")


def layout(*replicas: int) -> Layout:
    return Layout({1: None, 2: None}, {KEY: Placed(replicas, 1, frozenset(replicas))})


def test_what_is_complete_at_once_is_not_shown_as_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The controller has done it, and the broker that tells the replicas has not heard of it."""
    answers: list[tuple[Layout, UnderWay]] = [(layout(1), {}), (layout(1), {}), (layout(2), {})]

    def look(_: Cluster) -> tuple[Layout, UnderWay]:
        return answers.pop(0)

    monkeypatch.setattr(EXECUTING, "look", look)
    monkeypatch.setattr(following, "look", look)
    monkeypatch.setattr(following, "pause", lambda _: None)
    monkeypatch.setattr(EXECUTING, "begin", lambda _cluster, moves, *_: moves)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}))
    status = EXECUTING.execute(
        Cluster("nowhere:1"),
        file=str(plan),
        throttle=None,
        additional=False,
        save_current=None,
        wait=False,
        preserve_throttles=False,
        as_json=True,
    )
    [row] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (status, row["state"], row["replicas"]) == (FINE, "complete", [2])
    assert answers == []
