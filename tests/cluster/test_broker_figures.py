"""What is made of a broker's answer."""

from typing import Any

import pytest

from lamina.client.admin_listener import AdminListener
from lamina.cluster.broker_figures import BrokerFigures, BrokerWatch
from lamina.cluster.broker_status import BrokerState, BrokerStatus, Started

RUNNING = BrokerStatus(1, "127.0.0.1:9092", BrokerState.RUNNING, 7, Started(7, "127.0.0.1:9644", "1", "id", 0))
COUNTS = (
    "leader_partitions",
    "under_replicated_partitions",
    "under_min_isr_partitions",
    "offline_partitions",
    "replica_max_lag",
    "in_bytes",
    "out_bytes",
)


def figures(monkeypatch: pytest.MonkeyPatch, *, is_proven: bool, was_proven: bool) -> BrokerFigures:
    session = {"is_session_proven": is_proven, "was_session_proven": was_proven}
    row = {"is_this_broker": True, "is_controller": False, "replication": dict.fromkeys(COUNTS, 0) | session}

    def answer(_listener: AdminListener, *_path: str) -> dict[str, Any]:
        return {"brokers": [row]}

    monkeypatch.setattr(AdminListener, "get", answer)
    with BrokerWatch() as watch:
        [view] = watch.look([RUNNING])
    assert view.figures is not None
    return view.figures


def test_a_session_is_lost_only_after_it_was_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has just started is no cause for alarm."""
    assert not figures(monkeypatch, is_proven=False, was_proven=False).is_session_lost
    assert not figures(monkeypatch, is_proven=True, was_proven=True).is_session_lost
    assert figures(monkeypatch, is_proven=False, was_proven=True).is_session_lost


def test_a_broker_of_the_version_before_tells_of_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures(monkeypatch, is_proven=True, was_proven=True).low_log_dirs == ()
