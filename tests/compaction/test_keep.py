"""Which records stay (facts 60-64), in plain Python; the kernel's tests ask the same function compiled."""

import pytest

from lamina.compaction.keep import EXPIRED_TOMBSTONE, KEPT, SUPERSEDED, WITHOUT_KEY, judge_record
from lamina.compaction.times import NEVER_MS


def judge(
    *,
    is_control: bool = False,
    offset: int = 10,
    has_key: bool = True,
    is_superseded: bool = False,
    has_value: bool = True,
    horizon_ms: int = NEVER_MS,
    now_ms: int = 1000,
) -> int:
    return judge_record(is_control, offset, 20, has_key, is_superseded, has_value, horizon_ms, now_ms)


def test_fact_60_in_a_control_batch_every_record_survives() -> None:
    assert judge(is_control=True, has_key=False) == KEPT
    assert judge(is_control=True, is_superseded=True, has_value=False, horizon_ms=0) == KEPT


@pytest.mark.parametrize("offset", [20, 21])
def test_fact_61_a_record_above_the_end_of_the_pass_survives(offset: int) -> None:
    assert judge(offset=offset, has_key=False) == KEPT
    assert judge(offset=offset, is_superseded=True) == KEPT
    assert judge(offset=offset, has_value=False, horizon_ms=0) == KEPT


@pytest.mark.parametrize("offset", [0, 19])
def test_fact_62_a_record_without_a_key_is_removed(offset: int) -> None:
    assert judge(offset=offset, has_key=False) == WITHOUT_KEY
    assert judge(offset=offset, has_key=False, has_value=False, horizon_ms=0) == WITHOUT_KEY


def test_fact_63_the_newest_record_of_a_key_survives_and_an_older_one_does_not() -> None:
    assert judge() == KEPT
    assert judge(is_superseded=True) == SUPERSEDED
    assert judge(is_superseded=True, has_value=False, horizon_ms=0) == SUPERSEDED


def test_fact_63_a_value_survives_any_horizon() -> None:
    assert judge(horizon_ms=0) == KEPT


def test_fact_63_a_tombstone_without_a_horizon_survives() -> None:
    assert judge(has_value=False) == KEPT


def test_fact_63_and_68_a_tombstone_goes_when_its_horizon_has_come() -> None:
    assert judge(has_value=False, horizon_ms=1001) == KEPT
    assert judge(has_value=False, horizon_ms=1000) == EXPIRED_TOMBSTONE
    assert judge(has_value=False, horizon_ms=999) == EXPIRED_TOMBSTONE
