"""What a task does beside cleaning: say how far it is, end when nobody wants it, put a failure into words."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamina.cleaning.failures import Cancelled
from lamina.cleaning.limits import Throttle
from lamina.pipeline.tasks import (
    CANCELLED,
    Report,
    read_progress,
    spending,
)
from tests.cleaning.test_limits import Clock
from tests.pipeline.engines import a_plan


def test_the_bytes_of_all_tasks_of_a_pass_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.pipeline.tasks._TOLD_SECONDS", 0.0)
    plan = a_plan(tmp_path)
    assert read_progress(plan).size_bytes == 0
    one, other = Report(plan, "scan-0"), Report(plan, "scan-1")
    one(10)
    one(20)
    other(5)
    assert read_progress(plan).size_bytes == 35
    Report(plan, "scan-0")(7)  # The same piece again, after an attempt that failed.
    assert read_progress(plan).size_bytes == 12


def test_a_cancelled_pass_ends_at_its_next_piece(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    Path(plan.pass_folder, CANCELLED).touch()
    with pytest.raises(Cancelled):
        Report(plan, "whole").tell()


def test_a_pass_whose_folder_is_gone_ends_too(tmp_path: Path) -> None:
    plan = replace(a_plan(tmp_path), plan_id="another")
    with pytest.raises(Cancelled, match="its folder is gone"):
        Report(plan, "whole").tell()
    assert read_progress(plan).size_bytes == 0


def test_every_piece_of_a_pass_says_how_long_it_had_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fact 97: what the shuffle's tasks wait is added too."""
    clock = Clock()
    monkeypatch.setattr(
        "lamina.pipeline.tasks.throttle_of", lambda _plan: Throttle(1000, clock=clock, sleep=clock.sleep)
    )
    plan = a_plan(tmp_path)
    for name in ("headers-0", "scan-0", "rewrite-0"):
        with spending(plan, name) as spend:
            spend(500)
    assert clock.slept == [0.5] * 3
    assert read_progress(plan) == (1500, 1.5)


def test_without_a_limit_no_piece_waits(tmp_path: Path) -> None:
    plan = replace(a_plan(tmp_path), throttle_bytes_per_second=None)
    with spending(plan, "scan-0") as spend:
        spend(500)
    assert read_progress(plan).throttled_seconds == 0.0
