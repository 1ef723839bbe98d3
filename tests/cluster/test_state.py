"""The state file: what is written is read, and a crash leaves a whole one."""

import os
from pathlib import Path

import pytest

from lamina.cluster.errors import ClusterError
from lamina.cluster.state import BrokerPlace, ClusterState, read_state, write_state

STATE = ClusterState(2181, {1: BrokerPlace(9092), 2: BrokerPlace(9093, is_stopped=True)}, {"num.partitions": "3"})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    assert read_state(path) is None
    write_state(path, STATE)
    assert read_state(path) == STATE


def test_a_crash_before_the_new_file_is_in_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.json"
    write_state(path, STATE)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_state(path, STATE.with_broker(3, BrokerPlace(9094)))
    assert read_state(path) == STATE


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text("{")
    with pytest.raises(ClusterError, match="cannot be read"):
        read_state(path)
    path.write_text('{"format": 2}')
    with pytest.raises(ClusterError, match="newer Lamina"):
        read_state(path)
