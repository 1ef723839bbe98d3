"""The rows of the comparison of cleaners, and how the brokers in it are started."""

from pathlib import Path
from typing import Any

import pytest

from bench import cleaner_trials, cleaning
from bench.cleaner import BENCH, TUNED_HEAP_MEGABYTES, new_subjects
from bench.cleaner_trials import EVERYDAY_LOG, KAFKA_TUNED, new_trials, shown
from bench.cleaning import Cleaned, wait_until_quiet
from bench.source_log import MEBIBYTE, Log, SourceLogs
from tests.bench.idle_broker import IdleBroker


def test_every_broker_that_a_row_names_is_there(tmp_path: Path) -> None:
    trials = new_trials(False, tmp_path)
    assert {name for trial in trials for name in trial.subjects.values()} == new_subjects(tmp_path).keys()
    assert {name for trial in trials for name in trial.subjects} == BENCH.contestants.keys()


def test_rows_of_a_quick_run_are_those_of_a_whole_one(tmp_path: Path) -> None:
    whole, quick = ([trial.name for trial in new_trials(is_quick, tmp_path)] for is_quick in (False, True))
    assert whole == quick


def test_all_rows_are_warmed_up_but_the_first_pass_ever(tmp_path: Path) -> None:
    assert [trial.name for trial in new_trials(False, tmp_path) if not trial.api] == ["first-ever"]


def test_everyday_is_a_small_log_in_small_segments_with_time_and_memory(tmp_path: Path) -> None:
    assert Log(500_000, 100_000, 100, segment_bytes=8 * MEBIBYTE) == EVERYDAY_LOG
    (trial,) = (trial for trial in new_trials(False, tmp_path) if trial.name == "everyday")
    assert [(figure.name, figure.unit) for figure in trial.figures] == [
        ("cold pass", "s"),
        ("CPU for the cold pass", "s"),
        ("peak memory of the cold pass", "MB"),
    ]


def test_a_tuned_kafka_takes_its_heap_only_as_it_needs_it(tmp_path: Path) -> None:
    flags: Any = new_subjects(tmp_path)[KAFKA_TUNED]
    assert f"-Xmx{TUNED_HEAP_MEGABYTES}M" in flags._jvm_flags
    assert not any(flag.startswith("-Xms") for flag in flags._jvm_flags)
    assert TUNED_HEAP_MEGABYTES == 1024


def test_a_log_in_words() -> None:
    assert shown(Log(10_000_000, 2_000_000, 100)) == "10 M records, 2 M possible keys, values of 100 B"
    assert shown(EVERYDAY_LOG) == "0.5 M records, 0.1 M possible keys, values of 100 B, segments of 8 MiB"


@pytest.mark.parametrize(
    ("pass_seconds", "passes"),
    [(2.0, 10), (0.2, 15)],  # Enough cleaning; or, where sending takes most of the time, enough time.
)
def test_a_cleaner_is_warm_after_twenty_seconds_of_cleaning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pass_seconds: float, passes: int
) -> None:
    now = [0.0]
    cleaned: list[str] = []

    def clean(subject: Any, topic: str, partitions: int) -> Cleaned:
        cleaned.append(topic)
        now[0] += 2
        return Cleaned(1, pass_seconds, 0.0, 0)

    monkeypatch.setattr("bench.cleaner_trials.time.monotonic", lambda: now[0])
    monkeypatch.setattr(SourceLogs, "send", lambda *_: None)
    monkeypatch.setattr(cleaner_trials, "clean", clean)
    monkeypatch.setattr(cleaner_trials, "delete_topic", lambda *_: None)
    trial = new_trials(False, tmp_path)[0]
    assert trial.warm_up is not None
    trial.warm_up(IdleBroker("a", []), "topic")
    assert len(cleaned) == passes
    assert len(set(cleaned)) == passes


def test_a_broker_is_quiet_when_nothing_ran_below_it_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    busy_until = 10.0
    monkeypatch.setattr(cleaning, "families_of", lambda _: [0, 1] if now[0] < busy_until else [0])
    monkeypatch.setattr("bench.cleaning.time.monotonic", lambda: now[0])
    monkeypatch.setattr("bench.cleaning.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    wait_until_quiet(IdleBroker("a", []))
    assert now[0] >= busy_until + cleaning.QUIET_SECONDS - 0.2
    busy_until = 1e9
    with pytest.raises(TimeoutError):
        wait_until_quiet(IdleBroker("a", []))
