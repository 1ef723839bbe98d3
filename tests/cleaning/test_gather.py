"""What a plan says of a live log, and the folder that a pass works in."""

import os
from pathlib import Path

import pytest

from lamina.cleaning.contract import AbortedEntry, ActiveProducer
from lamina.cleaning.failures import NotEnoughFreeSpace
from lamina.cleaning.gather import PassLimits, PassRange, discard, prepare, take
from lamina.log.files import Disk
from tests.cleaning.small_passes import TOPIC_ID, a_compacted_log, begin
from tests.log.building import NOW_MS, a_log


def test_a_plan_has_every_segment_from_the_first_up_to_the_first_uncleanable_offset(tmp_path: Path) -> None:
    """Fact 41: the clean section too."""
    builder = a_compacted_log(tmp_path)
    taken = begin(builder.log, first_dirty_offset=6, first_uncleanable_offset=9)
    plan = prepare(taken)
    assert [(one.base_offset, one.next_base_offset) for one in plan.segments] == [(0, 3), (3, 6), (6, 9)]
    assert (plan.first_dirty_offset, plan.first_uncleanable_offset) == (6, 9)
    assert [one.size_bytes for one in plan.segments] == [s.size_bytes for s in list(builder.log.segments)[:3]]
    assert plan.directory == builder.log.path
    assert plan.pass_time_ms == NOW_MS
    assert plan.topic_id == TOPIC_ID


def test_a_plan_carries_the_settings_of_its_topic_as_they_are_now(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path, delete_retention_ms=77, segment_bytes=4321)
    plan = prepare(begin(builder.log))
    config = builder.log.config
    assert (plan.delete_retention_ms, plan.segment_bytes) == (77, 4321)
    assert plan.segment_index_bytes == config.segment_index_bytes
    assert plan.index_interval_bytes == config.index_interval_bytes
    assert plan.max_message_bytes == config.max_message_bytes


def test_a_plan_carries_the_sizes_of_the_indexes_by_which_segments_are_grouped(tmp_path: Path) -> None:
    """Fact 42."""
    builder = a_compacted_log(tmp_path, index_interval_bytes=0)
    builder.file(3, ".index").unlink()
    plan = prepare(begin(builder.log))
    sizes = [(one.index_bytes, one.time_index_bytes) for one in plan.segments]
    assert sizes[0] == tuple(builder.file(0, ext).stat().st_size for ext in (".index", ".timeindex"))
    assert sizes[0][0] > 0
    assert sizes[1][0] == 0


def test_active_producers_are_those_of_the_log_with_their_last_data_offset(tmp_path: Path) -> None:
    """Facts 57 and 59: a producer of whose epoch only a marker is known has no data offset."""
    builder = a_log(tmp_path, compact=True)
    builder.append(b"k=1", producer_id=7, producer_epoch=0, base_sequence=0)
    builder.append(b"k=2", producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.commit(8, producer_epoch=1)
    builder.log.roll(builder.now_ms)
    plan = prepare(begin(builder.log))
    assert plan.producers == (ActiveProducer(7, 0, 0), ActiveProducer(8, 1, None))


def test_aborted_transactions_come_from_all_segments_the_active_one_included(tmp_path: Path) -> None:
    """Fact 50: data in the first segment, its abort marker in the active one."""
    builder = a_log(tmp_path, compact=True)
    builder.append(b"k=1", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.log.roll(builder.now_ms)
    builder.append(b"k=2", producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.abort(8)
    builder.log.roll(builder.now_ms)
    builder.abort(7)
    plan = prepare(begin(builder.log, first_uncleanable_offset=1))
    assert [one.base_offset for one in plan.segments] == [0]
    assert plan.aborted == (AbortedEntry(8, 1, 2, 0), AbortedEntry(7, 0, 3, 4))


def test_the_pass_folder_holds_links_so_that_sources_cannot_vanish(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    plan = prepare(begin(builder.log))
    assert sorted(os.listdir(plan.pass_folder)) == [f"{base:020d}.log" for base in (0, 3, 6, 9)]
    for segment in plan.segments:
        path = Path(plan.pass_folder, segment.log_name)
        content = path.read_bytes()
        assert path.stat().st_ino == builder.file(segment.base_offset, ".log").stat().st_ino
        builder.file(segment.base_offset, ".log").unlink()
        assert path.read_bytes() == content
    discard(plan, Disk())
    assert not os.path.exists(plan.pass_folder)


def test_a_source_that_is_missing_fails_the_pass_and_is_never_read_as_empty(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken = begin(builder.log)
    builder.file(3, ".log").unlink()
    with pytest.raises(FileNotFoundError):
        prepare(taken)


class SmallDisk(Disk):
    def free_bytes(self, path: str) -> int:
        return 500


def test_without_room_for_a_second_copy_the_pass_is_refused_with_the_figures(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path, SmallDisk())
    size_bytes = sum(segment.size_bytes for segment in list(builder.log.segments)[:-1])
    extent = PassRange(0, builder.log.segments.active.base_offset)
    limits = PassLimits(1 << 20, None, keep_free_bytes=100)
    taken = take(builder.log, TOPIC_ID, extent, limits, plan_id="p", hash_key=bytes(16), now_ms=NOW_MS)
    with pytest.raises(NotEnoughFreeSpace) as caught:
        prepare(taken)
    assert f"may need {size_bytes} bytes" in str(caught.value)
    assert "500 are free" in str(caught.value)
    assert "100 must stay free" in str(caught.value)
    assert not os.path.exists(taken.plan.pass_folder)


@pytest.mark.parametrize("clean", [True, False])
def test_the_next_start_empties_pass_folders(tmp_path: Path, clean: bool) -> None:
    builder = a_compacted_log(tmp_path)
    plan = prepare(begin(builder.log))
    texts = builder.texts()
    builder.reopen(clean=clean)
    assert not os.path.exists(plan.pass_folder)
    assert builder.texts() == texts
