"""Which logs are cleaned next (facts 20 and 23)."""

from types import SimpleNamespace
from typing import Any

from lamina.broker.cleaner.candidates import Choice, CleaningCandidate, filthiest_logs, logs_with_passed_horizons
from lamina.cleaning.gather import PassRange
from lamina.compaction.eligibility import Cleanable, FirstDirty

ALL_CLEAN = Cleanable(20, 20, 100, 0, 0)


def candidate(topic: str, cleanable: Cleanable, *bases: int, ratio: float = 0.5) -> CleaningCandidate:
    segments = [SimpleNamespace(base_offset=base) for base in bases]
    config = SimpleNamespace(min_cleanable_dirty_ratio=ratio)
    partition: Any = SimpleNamespace(topic=topic, index=0, log=SimpleNamespace(config=config, segments=segments))
    return CleaningCandidate(partition, FirstDirty(cleanable.first_dirty_offset, is_reset=False), cleanable)


def topics(chosen: list[Choice]) -> list[str]:
    return [choice.candidate.partition.topic for choice in chosen]


def test_fact_23_the_filthiest_comes_first_and_an_overdue_one_waits_its_turn() -> None:
    candidates = [
        candidate("overdue", Cleanable(0, 9, 90, 10, 999)),
        candidate("dirty", Cleanable(0, 9, 40, 60, 0)),
        candidate("too clean", Cleanable(0, 9, 60, 40, 0)),
        candidate("filthy", Cleanable(5, 9, 1, 99, 0)),
    ]
    chosen = filthiest_logs(candidates, set())
    assert topics(chosen) == ["filthy", "dirty", "overdue"]
    assert chosen[0].pass_range == PassRange(5, 9)


def test_fact_20_each_log_has_a_ratio_of_its_own() -> None:
    half = Cleanable(0, 9, 50, 50, 0)
    assert topics(filthiest_logs([candidate("a", half, ratio=0.4), candidate("b", half, ratio=0.5)], set())) == ["a"]


def test_what_somebody_asks_for_comes_first_if_anything_of_it_can_be_cleaned() -> None:
    candidates = [
        candidate("filthy", Cleanable(0, 9, 1, 99, 0)),
        candidate("asked", Cleanable(0, 9, 99, 1, 0)),
        candidate("asked in vain", ALL_CLEAN),
    ]
    chosen = filthiest_logs(candidates, {("asked", 0), ("asked in vain", 0)})
    assert topics(chosen) == ["asked", "filthy"]
    assert [choice.is_manual for choice in chosen] == [True, False]


def test_an_idle_log_is_chosen_once_a_horizon_of_it_may_have_passed() -> None:
    """``lamina.cleaner.expire.idle``: what the last pass left says when, and of an unknown log nobody can."""
    idle = [candidate(name, ALL_CLEAN, 0, 10, 20) for name in ("unknown", "none", "later", "now")]
    horizons = {("none", 0): None, ("later", 0): 1001, ("now", 0): 1000}
    chosen = logs_with_passed_horizons(idle, horizons, 1000, 9)
    assert topics(chosen) == ["unknown", "now"]
    assert chosen[0].pass_range == PassRange(20, 20, only_expired=True)
    assert topics(logs_with_passed_horizons(idle, horizons, 1000, 1)) == ["unknown"]


def test_of_an_idle_log_only_what_is_clean_is_chosen() -> None:
    """Never the active segment."""
    assert logs_with_passed_horizons([candidate("t", Cleanable(7, 0, 10, 0, 0), 0)], {}, 1000, 9) == []
    inside = logs_with_passed_horizons([candidate("t", Cleanable(15, 15, 100, 0, 0), 0, 10, 20)], {}, 1000, 9)
    assert [choice.pass_range for choice in inside] == [PassRange(10, 10, only_expired=True)]
