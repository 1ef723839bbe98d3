"""What becomes of batches, and their horizons (facts 58, 65-69)."""

import pytest

from lamina.compaction.fate import (
    COPIED,
    GONE,
    HEADER_ONLY,
    REBUILT,
    REBUILT_WITH_NEW_HORIZON,
    judge_batch,
    new_horizon_ms,
)


def judge(
    records: int,
    kept: int,
    *,
    tombstones: int = 0,
    protected: bool = False,
    marker: bool = False,
    horizon: bool = False,
) -> int:
    return judge_batch(records, kept, tombstones, protected, marker, horizon)


@pytest.mark.parametrize("records", [0, 3])
def test_fact_58_a_batch_without_survivors_goes_unless_it_is_protected(records: int) -> None:
    assert judge(records, 0) == GONE
    assert judge(records, 0, protected=True) == HEADER_ONLY
    assert judge(records, 0, protected=True, marker=True, horizon=True) == HEADER_ONLY


def test_fact_65_a_batch_that_keeps_all_its_records_is_copied_exactly() -> None:
    assert judge(3, 3) == COPIED
    assert judge(3, 3, protected=True) == COPIED


def test_a_batch_that_loses_some_records_is_rebuilt() -> None:
    assert judge(3, 2) == REBUILT
    assert judge(3, 1, protected=True) == REBUILT


@pytest.mark.parametrize("kept", [2, 3])
def test_fact_66_a_surviving_tombstone_brings_a_horizon(kept: int) -> None:
    assert judge(3, kept, tombstones=1) == REBUILT_WITH_NEW_HORIZON


def test_fact_66_a_marker_without_data_gets_a_horizon() -> None:
    assert judge(1, 1, marker=True) == REBUILT_WITH_NEW_HORIZON


def test_fact_66_a_horizon_is_never_changed() -> None:
    assert judge(3, 3, tombstones=1, horizon=True) == COPIED
    assert judge(3, 2, tombstones=1, horizon=True) == REBUILT
    assert judge(1, 1, marker=True, horizon=True) == COPIED


def test_fact_66_no_survivor_no_horizon() -> None:
    assert judge(3, 0, marker=True) == GONE


def test_fact_66_the_horizon_is_the_instant_of_the_pass_plus_the_retention() -> None:
    assert new_horizon_ms(1000, 0) == 1000
    assert new_horizon_ms(1000, 86_400_000) == 86_401_000


def test_a_retention_without_end_makes_a_horizon_that_never_comes() -> None:
    assert new_horizon_ms(1000, 2**63 - 1) == 2**63 - 1
