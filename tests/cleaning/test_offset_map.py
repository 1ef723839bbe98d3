"""Both ways to find superseded records say the same, within their limits."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import NotEnoughFreeSpace, TooManyKeys
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.key_hashes import find_superseded
from lamina.cleaning.offset_map import OffsetMap
from lamina.cleaning.rewriting import groups_of, rewrite_group
from lamina.records.batch import Codec
from tests.cleaning.passes import marks_by_hash, plan_of, read_group, run_pass, verdicts_of
from tests.cleaning.test_clean_log import SLOW
from tests.compaction.story import Step, Story, take, writing_steps


def masks_by_hash(plan: Plan, verdicts: list[SegmentVerdicts]) -> list[bytes]:
    gathered = marks_by_hash(plan, verdicts)
    return [gathered.masks[number].tobytes() for number in range(len(plan.segments))]


@SLOW
@given(
    st.lists(writing_steps(), max_size=30), st.floats(0, 1), st.sampled_from([100, 1000, 1 << 24]), st.integers(1, 3)
)
def test_the_shuffle_marks_the_records_that_one_task_marks_whatever_its_memory(
    life: list[Step], share: float, limit_bytes: int, threads: int
) -> None:
    story = Story()
    for step in life:
        take(story, step)
    if not story.cleanable:
        return
    with TemporaryDirectory() as directory:
        first_dirty = int(share * story.first_uncleanable_offset)
        pass_ = story.pass_at(first_dirty, 0, frozenset())
        plan = plan_of(Path(directory), story, pass_, memory_limit_bytes=limit_bytes)
        verdicts = verdicts_of(plan)
        try:
            offset_map = OffsetMap(plan, verdicts, has_shuffle=True, threads=threads)
            in_one_task = [mask.tobytes() for mask in offset_map.find_superseded()]
        except TooManyKeys:
            assert limit_bytes == 100
            return
        assert masks_by_hash(plan, verdicts) == in_one_task


def a_story(keys: int, codec: Codec = Codec.NONE) -> Story:
    story = Story()
    for start in range(0, 2 * keys, 100):
        pairs = [(b"key %d" % (number * 7 % keys), b"value") for number in range(start, start + 100)]
        story.write(list(pairs), codec=codec)
    story.roll()
    return story


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("limit_bytes", [20_000, 60_000, 120_000, 1 << 24])
def test_keys_that_do_not_fit_go_to_a_scratch_file_with_the_same_result(
    tmp_path: Path, limit_bytes: int, threads: int
) -> None:
    story = a_story(5000)
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()), memory_limit_bytes=limit_bytes)
    offset_map = OffsetMap(plan, verdicts_of(plan), threads=threads)
    names = set(os.listdir(plan.pass_folder))
    (mask,) = offset_map.find_superseded()
    superseded = np.unpackbits(mask, bitorder="little")[:10_000]
    assert offset_map.keys == 5000
    assert superseded.sum() == 5000
    assert not superseded[5000:].any()
    assert offset_map.bytes_read == plan.segments[0].size_bytes, "read once, whatever the memory"
    assert set(os.listdir(plan.pass_folder)) == names, "the scratch file is gone"


def test_more_keys_than_the_scratch_file_may_hold_are_for_the_shuffle(tmp_path: Path) -> None:
    story = a_story(5000)
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()), memory_limit_bytes=10_000)
    names = set(os.listdir(plan.pass_folder))
    with pytest.raises(TooManyKeys, match="10000 bytes"):
        OffsetMap(plan, verdicts_of(plan), has_shuffle=True, threads=2).find_superseded()
    assert set(os.listdir(plan.pass_folder)) == names


def test_where_there_is_no_shuffle_any_number_of_keys_is_found(tmp_path: Path) -> None:
    story = a_story(5000)
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()), memory_limit_bytes=10)
    offset_map = OffsetMap(plan, verdicts_of(plan), threads=2)
    (mask,) = offset_map.find_superseded()
    assert (offset_map.keys, np.unpackbits(mask).sum()) == (5000, 5000)


def test_a_scratch_file_keeps_as_much_of_the_disk_free_as_the_plan_says(tmp_path: Path) -> None:
    story = a_story(5000)
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()), memory_limit_bytes=10, keep_free_bytes=2**60)
    names = set(os.listdir(plan.pass_folder))
    with pytest.raises(NotEnoughFreeSpace, match="became too full"):
        OffsetMap(plan, verdicts_of(plan)).find_superseded()
    assert set(os.listdir(plan.pass_folder)) == names


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_group_rewritten_by_hash_is_the_one_that_one_task_writes(tmp_path: Path, codec: Codec) -> None:
    story = a_story(1000, codec)
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()))
    _, (one,) = run_pass(plan)
    verdicts = verdicts_of(plan)
    masks = [np.frombuffer(mask, np.uint8) for mask in masks_by_hash(plan, verdicts)]
    (group,) = groups_of(plan)
    other = rewrite_group(plan, group, verdicts, masks, "1")
    assert read_group(plan, other.group).data == one.data


def test_a_short_hash_that_collides_takes_another_key_for_the_same() -> None:
    firsts = np.array([5, 5, 9], np.uint64)
    same, different = np.array([1, 1, 1], np.uint64), np.array([1, 2, 1], np.uint64)
    dirty = np.ones(3, np.uint8)
    assert find_superseded(firsts, same, dirty).tolist() == [True, False, False]
    assert find_superseded(firsts, different, dirty).tolist() == [False, False, False]


def test_a_clean_key_is_superseded_and_supersedes_nothing() -> None:
    firsts = np.array([5, 5, 5, 6, 6], np.uint64)
    dirty = np.array([0, 0, 1, 0, 0], np.uint8)
    assert find_superseded(firsts, firsts, dirty).tolist() == [True, True, False, False, False]
