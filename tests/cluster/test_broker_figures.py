"""What is made of a broker's answer."""

from pathlib import Path
from typing import Any

import pytest

from lamina.client.admin_listener import AdminListener, Token
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


def figures(
    monkeypatch: pytest.MonkeyPatch, *, is_proven: bool, was_proven: bool, is_controller: bool = False
) -> BrokerFigures:
    session = {"is_session_proven": is_proven, "was_session_proven": was_proven}
    row = {"is_this_broker": True, "is_controller": is_controller, "replication": dict.fromkeys(COUNTS, 0) | session}

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


def test_a_controller_that_cannot_prove_its_session_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures(monkeypatch, is_proven=True, was_proven=True, is_controller=True).is_controller
    assert not figures(monkeypatch, is_proven=False, was_proven=True, is_controller=True).is_controller


def test_a_broker_of_the_version_before_tells_of_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures(monkeypatch, is_proven=True, was_proven=True).low_log_dirs == ()


@pytest.mark.parametrize("is_there", [True, False])
def test_the_viewers_token_goes_along_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool
) -> None:
    """A broker whose clients log in shows its figures to nobody else."""
    sent: list[Token | None] = []

    def answer(listener: AdminListener, *_path: str) -> dict[str, Any]:
        sent.append(listener._token)
        return {"brokers": []}

    monkeypatch.setattr(AdminListener, "get", answer)
    if is_there:
        (tmp_path / "admin.viewer.token").write_text("0123456789abcdef\n")
    started = Started(1, "127.0.0.1:1", "0", "c", 0)
    status = BrokerStatus(1, "127.0.0.1:2", BrokerState.RUNNING, 1, started, tmp_path)
    with BrokerWatch() as watch:
        watch.look([status])
    (token,) = sent
    assert (token is not None and token.text == "0123456789abcdef") == is_there
