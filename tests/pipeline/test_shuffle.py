"""Keys as packed columns: buckets, stretches, and what a hash that is too short would do."""

from pathlib import Path

import numpy as np
import pytest

from lamina.cleaning import key_hashes
from lamina.cleaning.header_scan import judge_batches, scan_headers
from lamina.cleaning.key_hashes import SegmentKeys
from lamina.cleaning.offset_map import OffsetMap
from lamina.pipeline import shuffle
from lamina.pipeline.shuffle import KEYS, Columns, Packed, bucket_bits, gather_group, pack, reduce_bucket, unpack
from tests.pipeline.engines import a_plan

MEBIBYTE = 1 << 20


def superseded_records(plan_directory: Path, keys: int) -> tuple[int, int, int]:
    """Of a log with every key four times: records marked by the shuffle, its keys, and records marked by one task."""
    plan = a_plan(plan_directory, keys=keys)
    numbers = range(len(plan.segments))
    verdicts = judge_batches(plan, [scan_headers(plan, number) for number in numbers])
    buckets: list[list[Packed]] = [[] for _ in range(4)]
    for number in numbers:
        for bucket, row in shuffle.scan_into_buckets(plan, number, verdicts[number], 2):
            buckets[bucket].append(row)
    rows = [row for bucket in buckets for _, row in reduce_bucket(bucket, [0] * len(plan.segments))]
    gathered = gather_group(rows, numbers, verdicts)
    marked = sum(int(np.unpackbits(mask).sum()) for mask in gathered.masks.values())
    exact = sum(int(np.unpackbits(mask).sum()) for mask in OffsetMap(plan, verdicts).find_superseded())
    return marked, gathered.keys, exact


def test_128_bits_tell_keys_apart(tmp_path: Path) -> None:
    assert superseded_records(tmp_path, 2000) == (6000, 2000, 6000)


def test_16_bits_take_different_keys_for_the_same_and_lose_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = key_hashes.scan_segment

    def short(*arguments: object, **options: object) -> object:
        for keys in whole(*arguments, **options):  # type: ignore[arg-type]
            firsts = keys.firsts & np.uint64(0xFFFF << 48)
            yield SegmentKeys(firsts, np.zeros_like(firsts), keys.ordinals, keys.is_dirty)

    monkeypatch.setattr(shuffle, "scan_segment", short)
    marked, keys, exact = superseded_records(tmp_path, 2000)
    # Of 2,000 keys in 65,536 places about 30 share one: those keys are lost, and no other.
    assert 5 < 2000 - keys < 100
    assert marked == exact + (2000 - keys)


def test_the_keys_of_a_bucket_spread_over_the_whole_table_in_which_they_are_told_apart(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, keys=2000)
    verdicts = judge_batches(plan, [scan_headers(plan, number) for number in range(len(plan.segments))])
    homes: dict[int, set[int]] = {}
    for bucket, (_, stretch, data) in shuffle.scan_into_buckets(plan, 0, verdicts[0], 3):
        if stretch >= 0:
            homes.setdefault(bucket, set()).update((unpack(data).firsts >> np.uint64(61)).tolist())
    # A table finds a slot by the upper bits: if these named the bucket, all would crowd in an eighth of the slots.
    assert homes == {bucket: set(range(8)) for bucket in range(8)}


def test_a_key_that_is_everywhere_is_no_burden_to_its_bucket(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, keys=1, segments=300)
    verdicts = judge_batches(plan, [scan_headers(plan, number) for number in range(300)])
    rows = [row for n in range(300) for _, row in shuffle.scan_into_buckets(plan, n, verdicts[n], 0)]
    sorted_records = sum(len(data) // shuffle.ENTRY_BYTES for _, stretch, data in rows if stretch >= 0)
    assert sorted_records == 300  # One for each segment, however many it has.


def test_stretches_keep_the_memory_of_a_scan_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "_FEWEST_RANGE_RECORDS", 1)
    monkeypatch.setattr("lamina.cleaning.slices.SLICE_BYTES", 2000)
    assert superseded_records(tmp_path, 2000) == (6000, 2000, 6000)


@pytest.mark.parametrize(
    ("records", "limit_bytes", "slots", "bits"),
    [
        (10, 128 * MEBIBYTE, 1, 0),
        (10, 128 * MEBIBYTE, 2, 1),
        (10, 128 * MEBIBYTE, 3, 2),
        (100_000_000, 128 * MEBIBYTE, 2, 7),
        (10, 1, 1, 0),
        (10**12, 1, 1, 14),
    ],
)
def test_there_are_as_many_buckets_as_memory_and_slots_ask_for(
    records: int, limit_bytes: int, slots: int, bits: int
) -> None:
    assert bucket_bits(records, limit_bytes, slots) == bits


def test_columns_are_the_same_after_packing() -> None:
    columns = Columns(
        np.array([1, 2**64 - 1], np.uint64),
        np.array([3, 4], np.uint64),
        np.array([5, 2**32 - 1], np.uint32),
        np.array([0, 1], np.uint8),
    )
    assert len(pack(columns)) == 2 * shuffle.ENTRY_BYTES
    assert [column.tolist() for column in unpack(pack(columns))] == [column.tolist() for column in columns]


def test_a_failed_scan_reaches_the_first_group_and_no_mask_is_made_of_it() -> None:
    rows = list(reduce_bucket([(3, shuffle.FAILED, b"why")], [0, 0, 1, 1]))
    assert rows == [(0, (shuffle.FAILED, b"why"))]
    assert gather_group([row for _, row in rows], [], []).failure == b"why"
    assert KEYS != shuffle.FAILED
