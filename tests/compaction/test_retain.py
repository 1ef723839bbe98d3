"""Which records and batches a pass retains (facts 58, 60-69), in plain Python; ``tests/cleaning`` has them compiled."""

import pytest

from lamina.compaction.retain import (
    COPY,
    DISCARD,
    EXPIRED_TOMBSTONE,
    NEVER_MS,
    REBUILD,
    REBUILD_WITH_NEW_HORIZON,
    RETAIN,
    RETAIN_HEADER,
    SUPERSEDED,
    WITHOUT_KEY,
    batch_retention,
    new_horizon_ms,
    should_retain_record,
)


def record(
    *,
    is_control: bool = False,
    offset: int = 10,
    has_key: bool = True,
    is_superseded: bool = False,
    has_value: bool = True,
    horizon_ms: int = NEVER_MS,
    now_ms: int = 1000,
) -> int:
    return should_retain_record(is_control, offset, 20, has_key, is_superseded, has_value, horizon_ms, now_ms)


def test_fact_60_in_a_control_batch_every_record_survives() -> None:
    assert record(is_control=True, has_key=False) == RETAIN
    assert record(is_control=True, is_superseded=True, has_value=False, horizon_ms=0) == RETAIN


@pytest.mark.parametrize("offset", [20, 21])
def test_fact_61_a_record_above_the_end_of_the_pass_survives(offset: int) -> None:
    assert record(offset=offset, has_key=False) == RETAIN
    assert record(offset=offset, is_superseded=True) == RETAIN
    assert record(offset=offset, has_value=False, horizon_ms=0) == RETAIN


@pytest.mark.parametrize("offset", [0, 19])
def test_fact_62_a_record_without_a_key_is_removed(offset: int) -> None:
    assert record(offset=offset, has_key=False) == WITHOUT_KEY
    assert record(offset=offset, has_key=False, has_value=False, horizon_ms=0) == WITHOUT_KEY


def test_fact_63_the_newest_record_of_a_key_survives_and_an_older_one_does_not() -> None:
    assert record() == RETAIN
    assert record(is_superseded=True) == SUPERSEDED
    assert record(is_superseded=True, has_value=False, horizon_ms=0) == SUPERSEDED


def test_fact_63_a_value_survives_any_horizon() -> None:
    assert record(horizon_ms=0) == RETAIN


def test_fact_63_a_tombstone_without_a_horizon_survives() -> None:
    assert record(has_value=False) == RETAIN


def test_fact_63_and_68_a_tombstone_goes_when_its_horizon_has_come() -> None:
    assert record(has_value=False, horizon_ms=1001) == RETAIN
    assert record(has_value=False, horizon_ms=1000) == EXPIRED_TOMBSTONE
    assert record(has_value=False, horizon_ms=999) == EXPIRED_TOMBSTONE


# Batches


def batch(
    records: int,
    kept: int,
    *,
    tombstones: int = 0,
    retain_empty: bool = False,
    marker: bool = False,
    horizon: bool = False,
) -> int:
    return batch_retention(records, kept, tombstones, retain_empty, marker, horizon)


@pytest.mark.parametrize("records", [0, 3])
def test_fact_58_a_batch_without_survivors_goes_unless_it_is_retained_empty(records: int) -> None:
    assert batch(records, 0) == DISCARD
    assert batch(records, 0, retain_empty=True) == RETAIN_HEADER
    assert batch(records, 0, retain_empty=True, marker=True, horizon=True) == RETAIN_HEADER


def test_fact_65_a_batch_that_keeps_all_its_records_is_copied_exactly() -> None:
    assert batch(3, 3) == COPY
    assert batch(3, 3, retain_empty=True) == COPY


def test_a_batch_that_loses_some_records_is_rebuilt() -> None:
    assert batch(3, 2) == REBUILD
    assert batch(3, 1, retain_empty=True) == REBUILD


@pytest.mark.parametrize("kept", [2, 3])
def test_fact_66_a_surviving_tombstone_brings_a_horizon(kept: int) -> None:
    assert batch(3, kept, tombstones=1) == REBUILD_WITH_NEW_HORIZON


def test_fact_66_a_marker_without_data_gets_a_horizon() -> None:
    assert batch(1, 1, marker=True) == REBUILD_WITH_NEW_HORIZON


def test_fact_66_a_horizon_is_never_changed() -> None:
    assert batch(3, 3, tombstones=1, horizon=True) == COPY
    assert batch(3, 2, tombstones=1, horizon=True) == REBUILD
    assert batch(1, 1, marker=True, horizon=True) == COPY


def test_fact_66_no_survivor_no_horizon() -> None:
    assert batch(3, 0, marker=True) == DISCARD


def test_fact_66_the_horizon_is_the_instant_of_the_pass_plus_the_retention() -> None:
    assert new_horizon_ms(1000, 0) == 1000
    assert new_horizon_ms(1000, 86_400_000) == 86_401_000


def test_a_retention_without_end_makes_a_horizon_that_never_comes() -> None:
    assert new_horizon_ms(1000, 2**63 - 1) == 2**63 - 1
