"""Which logs are cleaned next (facts 20 and 23)."""

from types import SimpleNamespace
from typing import Any

from lamina.broker.cleaner.choosing import Choice, choose, choose_idle
from lamina.broker.cleaner.sight import Sight
from lamina.cleaning.gather import PassRange
from lamina.compaction.eligibility import Cleanable, FirstDirty

ALL_CLEAN = Cleanable(20, 20, 100, 0, 0)


def sight(topic: str, cleanable: Cleanable, *bases: int, ratio: float = 0.5) -> Sight:
    segments = [SimpleNamespace(base_offset=base) for base in bases]
    config = SimpleNamespace(min_cleanable_dirty_ratio=ratio)
    partition: Any = SimpleNamespace(topic=topic, index=0, log=SimpleNamespace(config=config, segments=segments))
    return Sight(partition, FirstDirty(cleanable.first_dirty_offset, is_reset=False), cleanable)


def topics(chosen: list[Choice]) -> list[str]:
    return [choice.sight.partition.topic for choice in chosen]


def test_fact_23_the_filthiest_comes_first_and_an_overdue_one_waits_its_turn() -> None:
    sights = [
        sight("overdue", Cleanable(0, 9, 90, 10, 999)),
        sight("dirty", Cleanable(0, 9, 40, 60, 0)),
        sight("too clean", Cleanable(0, 9, 60, 40, 0)),
        sight("filthy", Cleanable(5, 9, 1, 99, 0)),
    ]
    chosen = choose(sights, set())
    assert topics(chosen) == ["filthy", "dirty", "overdue"]
    assert chosen[0].extent == PassRange(5, 9)


def test_fact_20_each_log_has_a_ratio_of_its_own() -> None:
    half = Cleanable(0, 9, 50, 50, 0)
    assert topics(choose([sight("a", half, ratio=0.4), sight("b", half, ratio=0.5)], set())) == ["a"]


def test_what_somebody_asks_for_comes_first_if_anything_of_it_can_be_cleaned() -> None:
    sights = [
        sight("filthy", Cleanable(0, 9, 1, 99, 0)),
        sight("asked", Cleanable(0, 9, 99, 1, 0)),
        sight("asked in vain", ALL_CLEAN),
    ]
    chosen = choose(sights, {("asked", 0), ("asked in vain", 0)})
    assert topics(chosen) == ["asked", "filthy"]
    assert [choice.is_manual for choice in chosen] == [True, False]


def test_an_idle_log_is_chosen_once_a_horizon_of_it_may_have_passed() -> None:
    """``lamina.cleaner.expire.idle``: what the last pass left says when, and of an unknown log nobody can."""
    idle = [sight(name, ALL_CLEAN, 0, 10, 20) for name in ("unknown", "none", "later", "now")]
    horizons = {("none", 0): None, ("later", 0): 1001, ("now", 0): 1000}
    chosen = choose_idle(idle, horizons, 1000, 9)
    assert topics(chosen) == ["unknown", "now"]
    assert chosen[0].extent == PassRange(20, 20, only_expired=True)
    assert topics(choose_idle(idle, horizons, 1000, 1)) == ["unknown"]


def test_of_an_idle_log_only_what_is_clean_is_chosen() -> None:
    """Never the active segment."""
    assert choose_idle([sight("t", Cleanable(7, 0, 10, 0, 0), 0)], {}, 1000, 9) == []
    inside = choose_idle([sight("t", Cleanable(15, 15, 100, 0, 0), 0, 10, 20)], {}, 1000, 9)
    assert [choice.extent for choice in inside] == [PassRange(10, 10, only_expired=True)]
