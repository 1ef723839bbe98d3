"""A pass keeps to its bytes a second, in one process or in several (fact 97), and its process has a low priority."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from lamina.cleaning.limits import FileLedger, Throttle, throttle_of
from tests.pipeline.engines import a_plan


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_fact_97_it_sleeps_just_enough_and_not_before_300_ms() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock=clock, sleep=clock.sleep)
    throttle(5000)
    assert clock.slept == []
    clock.now += 0.5
    throttle(1000)
    assert clock.slept == [5.5]
    assert throttle.slept_seconds == 5.5


def test_fact_97_each_stretch_is_judged_by_itself() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock=clock, sleep=clock.sleep)
    clock.now += 10
    throttle(1000)
    assert clock.slept == []
    clock.now += 0.5
    throttle(1000)
    assert clock.slept == [0.5]


def test_fact_97_what_a_pass_spends_in_less_than_300_ms_counts_at_its_end() -> None:
    """Many small logs are a large one."""
    clock = Clock()
    throttle = Throttle(1000, clock=clock, sleep=clock.sleep)
    clock.now += 0.25
    throttle(500)
    assert throttle.finish() == 0.25
    assert clock.slept == [0.25]


def test_fact_97_processes_that_name_the_same_file_keep_to_one_limit(tmp_path: Path) -> None:
    """Each waits for what both have spent."""
    clock = Clock()
    ledger = str(tmp_path / "throttle")
    one, other = (Throttle(1000, FileLedger(ledger), clock=clock, sleep=clock.sleep) for _ in range(2))
    clock.now += 0.5
    one(1000)
    assert clock.slept == [0.5]  # It took the second from 100 to 101 …
    other(1000)
    assert clock.slept == [0.5, 1.0]  # … and the other one the second after it.
    assert (clock.now, one.slept_seconds, other.slept_seconds) == (102.0, 0.5, 1.0)


def test_fact_97_what_an_idle_process_leaves_is_for_the_busy_one(tmp_path: Path) -> None:
    clock = Clock()
    ledger = str(tmp_path / "throttle")
    busy, idle = (Throttle(1000, FileLedger(ledger), clock=clock, sleep=clock.sleep) for _ in range(2))
    for _ in range(4):
        clock.now += 0.5
        busy(1000)
    assert clock.now == 104.0  # 1000 bytes in each second, as if it were alone.
    clock.now += 10.0
    idle(1000)
    assert idle.slept_seconds == 0.0


def test_a_file_that_holds_nonsense_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "throttle"
    path.write_bytes(b"abc")
    assert FileLedger(str(path)).spend(1.0, 100.0) == 101.0
    assert FileLedger(str(path)).spend(1.0, 100.0) == 102.0


def test_a_plan_says_whether_and_with_whom_it_is_throttled(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    assert throttle_of(replace(plan, throttle_bytes_per_second=None)) is None
    shared = throttle_of(replace(plan, throttle_bytes_per_second=1e12, throttle_path=str(tmp_path / "throttle")))
    assert shared is not None
    shared(1)
    shared.finish()
    assert (tmp_path / "throttle").exists()


# Priority

_CODE = """
import os
from pathlib import Path
from lamina.cleaning.limits import lower_priority
before = os.nice(0)
lower_priority()
group = Path("/proc/self/autogroup")
said = group.read_text().split() if group.exists() else []
print(os.nice(0) - before, said[-1] if said else "none")
"""


def test_a_process_of_the_cleaner_is_as_nice_as_its_session() -> None:
    run = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, start_new_session=True)
    assert run.returncode == 0, run.stderr
    nicer, session = run.stdout.split()
    assert int(nicer) == min(10, 19 - os.nice(0))
    assert session in ("none", "10")


def test_it_is_the_first_to_go_when_memory_is_short() -> None:
    load = "from lamina.cleaning.limits import lower_priority; lower_priority()"
    code = f"{load}; print(open('/proc/self/oom_score_adj').read())"
    if not os.path.exists("/proc/self/oom_score_adj"):
        return
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 500
