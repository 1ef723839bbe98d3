"""What a task does beside cleaning: say how far it is, end when nobody wants it, put a failure into words."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamina.pipeline.tasks import (
    CANCELLED,
    Cancelled,
    Report,
    read_progress,
    share,
    threads_of,
)
from tests.pipeline.engines import a_plan


def test_the_bytes_of_all_tasks_of_a_pass_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.pipeline.tasks._TOLD_SECONDS", 0.0)
    plan = a_plan(tmp_path)
    assert read_progress(plan) == 0
    one, other = Report(plan, "scan-0"), Report(plan, "scan-1")
    one(10)
    one(20)
    other(5)
    assert read_progress(plan) == 35
    Report(plan, "scan-0")(7)  # The same piece again, after an attempt that failed.
    assert read_progress(plan) == 12


def test_a_cancelled_pass_ends_at_its_next_piece(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    Path(plan.pass_folder, CANCELLED).touch()
    with pytest.raises(Cancelled):
        Report(plan, "whole").tell()


def test_a_pass_whose_folder_is_gone_ends_too(tmp_path: Path) -> None:
    plan = replace(a_plan(tmp_path), plan_id="another")
    with pytest.raises(Cancelled, match="its folder is gone"):
        Report(plan, "whole").tell()
    assert read_progress(plan) == 0


def test_what_a_pass_may_take_is_divided_among_the_tasks_at_work(tmp_path: Path) -> None:
    plan = replace(a_plan(tmp_path), memory_limit_bytes=100, throttle_bytes_per_second=30.0)
    assert (share(plan, 3).memory_limit_bytes, share(plan, 3).throttle_bytes_per_second) == (33, 10.0)
    assert share(replace(plan, throttle_bytes_per_second=None), 3).throttle_bytes_per_second is None


def test_a_log_gets_threads_by_its_share_of_the_bytes(tmp_path: Path) -> None:
    small, large = a_plan(tmp_path / "small", keys=1), a_plan(tmp_path / "large", keys=1000)
    assert threads_of([large], 4) == [4]
    assert threads_of([large, large], 4) == [2, 2]
    assert threads_of([large, small], 4) == [4, 1]
    assert threads_of([small] * 9, 4) == [1] * 9
