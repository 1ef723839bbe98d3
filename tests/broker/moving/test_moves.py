"""Partitions that move from one log directory to another, while everything else goes on (R70)."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamina.broker.counters import Place
from lamina.broker.moving import partition_move
from lamina.broker.moving.moves import Moves
from lamina.errors import ErrorCode
from lamina.log.directory import LogDirectory
from lamina.log.identity import read_topic_id
from lamina.log.names import parse_future_directory
from lamina.settings.resolve import resolve_broker
from tests.broker.broken_disk import break_paths
from tests.broker.moving.two_directories import KEY, RATE, TwoDirectories


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDirectories]:
    two = TwoDirectories(tmp_path)
    two.broker.create("t")
    yield two
    two.close()


def test_a_moved_partition_is_in_the_other_directory_with_all_that_was_in_it(two: TwoDirectories) -> None:
    two.produce(5)
    before, came_from, goes_to = two.values(), two.here, two.elsewhere
    assert two.begin() == ErrorCode.NONE
    two.finish()
    assert two.here is goes_to
    assert two.values() == before
    assert sorted(map(len, two.names())) == [0, 1]
    assert KEY not in came_from.logs
    assert KEY not in came_from.offset_checkpoints.recovery_points
    assert goes_to.logs[KEY] is two.partition.log
    path = f"{goes_to.path}/t-0"
    assert read_topic_id(goes_to.disk, path) == two.partition.topic_id.bytes
    assert "lamina-moved-from" not in os.listdir(path)


def test_it_goes_on_there_also_after_a_restart(two: TwoDirectories) -> None:
    two.produce(3)
    two.begin()
    two.finish()
    two.produce(2)
    before, place = two.values(), two.here.path
    two.broker.restart()
    assert (two.values(), two.here.path) == (before, place)
    two.produce()
    assert two.partition.log.log_end_offset == 6


def test_what_is_written_meanwhile_is_moved_too(two: TwoDirectories) -> None:
    two.produce(4)
    assert two.begin_and_hold() == 3
    two.produce(3)
    before = two.values()
    two.finish()
    assert two.values() == before
    two.produce()
    assert two.partition.log.log_end_offset == 8


def test_log_directories_tell_of_the_future_log_and_how_far_it_is_behind(two: TwoDirectories) -> None:
    two.produce(4)
    here, there = Path(two.here.path).name, Path(two.elsewhere.path).name
    two.begin_and_hold()
    assert two.described() == {here: [(False, 0)], there: [(True, 3)]}
    (name,) = two.names()[two.directories.index(two.elsewhere)]
    assert parse_future_directory(name) == KEY
    two.finish()
    assert two.described() == {here: [], there: [(False, 0)]}


def test_a_move_back_ends_it_and_nothing_is_left(two: TwoDirectories) -> None:
    two.produce(4)
    here, there = two.here, two.elsewhere
    two.begin_and_hold()
    assert two.begin(here.path) == ErrorCode.NONE
    assert (two.broker.parts.moves.under_way, two.here) == (0, here)
    assert sorted(map(len, two.names())) == [0, 1]
    assert KEY not in there.logs
    assert two.broker.parts.cleaner.states.may_begin(KEY)
    two.begin()
    two.finish()
    assert two.here is there


def test_asking_again_for_the_same_directory_changes_nothing(two: TwoDirectories) -> None:
    two.produce(4)
    two.begin_and_hold()
    names = two.names()
    assert two.begin() == ErrorCode.NONE
    assert (two.names(), two.broker.parts.moves.under_way) == (names, 1)
    two.finish()
    assert two.begin(two.here.path) == ErrorCode.NONE
    assert two.broker.parts.moves.under_way == 0


def test_a_topic_that_is_deleted_takes_its_future_log_with_it(two: TwoDirectories) -> None:
    two.produce(4)
    two.begin_and_hold()
    two.broker.delete("t")
    assert two.names() == [[], []]
    assert two.broker.parts.moves.under_way == 0
    two.broker.create("t")
    two.produce()
    assert two.partition.log.log_end_offset == 1


def test_the_log_start_moves_with_it(two: TwoDirectories) -> None:
    two.produce(6)
    two.begin_and_hold()
    two.partition.log.advance_log_start(4)
    two.finish()
    assert two.partition.log.log_start_offset == 4
    assert [offset for offset, _ in two.values()] == [4, 5]
    assert two.partition.log.segments.first.base_offset == 4, "what came before was not copied"


def test_a_log_that_begins_inside_a_batch_is_moved_with_that_batch(two: TwoDirectories) -> None:
    two.broker.produce("t", 5)
    two.produce(2)
    two.partition.log.advance_log_start(3)
    before = two.partition.log.segments.size_bytes()
    two.begin()
    two.finish()
    log = two.partition.log
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes()) == (3, 7, before)
    assert two.values()[0][0] == 0


def test_an_empty_log_is_moved_too(two: TwoDirectories) -> None:
    there = two.elsewhere
    two.begin()
    two.finish()
    assert two.here is there
    two.produce()
    assert two.partition.log.log_end_offset == 1


def test_a_log_whose_records_are_all_deleted_goes_on_where_it_ended(two: TwoDirectories) -> None:
    two.produce(3)
    two.partition.log.advance_log_start(3)
    two.begin()
    two.finish()
    assert (two.partition.log.log_start_offset, two.partition.log.log_end_offset) == (3, 3)
    two.broker.restart()
    two.produce()
    assert two.partition.log.log_end_offset == 4


def test_many_segments_are_moved(two: TwoDirectories) -> None:
    for _ in range(5):
        two.produce(2)
        two.partition.log.roll(two.broker.parts.clocks.now_ms())
    before, bases = two.values(), [segment.base_offset for segment in two.partition.log.segments]
    two.begin()
    two.finish()
    assert two.values() == before
    assert [segment.base_offset for segment in two.partition.log.segments] == bases[:-1], "all but the empty last one"
    two.broker.restart()
    assert two.values() == before


def test_a_move_goes_on_at_the_next_start(two: TwoDirectories) -> None:
    two.produce(6)
    two.begin_and_hold()
    there, copied = two.elsewhere.path, two.broker.parts.moves.max_lag
    before = two.values()
    two.broker.restart(**{RATE: "1"})
    assert two.here.path != there
    assert two.broker.parts.moves.under_way == 1
    two.broker.run_until(lambda: 0 < two.broker.parts.moves.max_lag <= copied)
    two.finish()
    assert (two.here.path, two.values()) == (there, before)


def test_a_copy_of_a_log_that_was_compacted_since_begins_anew(two: TwoDirectories) -> None:
    """Else it had a key whose tombstone is gone: compaction has removed both from the log in between."""
    two.produce(6)
    two.begin_and_hold()
    two.here.write_cleaner_offsets({KEY: 2})
    two.broker.restart(**{RATE: "1"})
    moves = two.broker.parts.moves
    two.broker.run_until(lambda: 0 < moves.max_lag < 6)
    assert moves.max_lag == 5, "the first batch was copied again"
    two.finish()


def test_what_has_the_partitions_name_in_the_other_directory_is_kept(two: TwoDirectories) -> None:
    two.produce(2)
    strange = Path(two.elsewhere.path, "t-0")
    strange.mkdir()
    (strange / "something").write_text("of somebody's")
    there = two.elsewhere
    two.begin()
    two.finish()
    assert (two.here, there.failure) == (there, None)
    (stray,) = Path(there.path).glob("t-0.*-stray")
    assert (stray / "something").exists()


def test_the_log_is_not_cleaned_meanwhile(two: TwoDirectories) -> None:
    two.produce(4)
    states = two.broker.parts.cleaner.states
    two.begin_and_hold()
    assert not states.may_begin(KEY)
    two.finish()
    assert states.may_begin(KEY)


def test_producers_go_on_where_they_were(two: TwoDirectories) -> None:
    """Also one whose batches are deleted: a copy of the log alone would not know it."""
    two.produce(2)
    log = two.partition.log
    log.producers.note_id(77)
    producers = log.producers
    two.begin()
    two.finish()
    assert two.partition.log is not log
    assert two.partition.log.producers is producers


def test_checkpoints_of_the_cleaner_and_of_high_watermarks_move(two: TwoDirectories) -> None:
    two.produce(4)
    two.partition.log.roll(two.broker.parts.clocks.now_ms())
    two.produce()
    two.here.write_cleaner_offsets({KEY: 3})
    came_from, goes_to = two.here, two.elsewhere
    two.begin()
    two.finish()
    assert goes_to.offset_checkpoints.cleaner_offsets[KEY] == 3
    assert goes_to.offset_checkpoints.high_watermarks[KEY] == 5
    assert KEY not in came_from.offset_checkpoints.cleaner_offsets


def test_where_the_end_was_cut_the_copy_is_cut_too(two: TwoDirectories) -> None:
    two.produce(5)
    two.begin_and_hold()
    partition = two.partition
    now_ms = two.broker.parts.clocks.now_ms()
    for step in two.here.truncate(partition.log, 0, now_ms):
        step()
    partition.was_truncated()
    two.broker.set_partition(*KEY, leader_epoch=partition.leader_epoch + 1)
    two.produce(3)
    before = two.values()
    two.finish()
    assert two.values() == before
    assert two.partition.log.log_end_offset == 3


def test_a_disk_that_fails_under_the_copy_leaves_the_partition_where_it_is(
    two: TwoDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.produce(4)
    here, there = two.here, two.elsewhere
    two.begin_and_hold()
    break_paths(monkeypatch, lambda path: path.startswith(there.path))
    two.finish()
    assert there.failure is not None
    assert two.here is here
    two.produce()
    assert two.begin(there.path) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_disk_that_fails_under_the_old_log_leaves_that_and_the_partition_has_moved(
    two: TwoDirectories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    two.produce(4)
    before, here, there = two.values(), two.here, two.elsewhere

    def broken(directory: LogDirectory, *_: object) -> None:
        raise directory.fail(OSError(errno.EIO, "Input/output error"))

    monkeypatch.setattr(LogDirectory, "rename_deleted", broken)
    two.begin_and_hold()
    two.finish()
    assert two.here is there
    assert two.values() == before
    told = [one for one in caplog.messages if "move" in one and here.path in one]
    assert f"{two.partition.log.name} was moved, and its old log in {here.path} stays" in told[-1]


def test_a_fault_of_ours_ends_that_move_alone_and_is_counted(
    two: TwoDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("a bug")

    two.produce(3)
    here = two.here
    with monkeypatch.context() as patch:
        patch.setattr("lamina.broker.moving.partition_move.find_gap", broken)
        two.begin()
        two.finish()
    assert two.broker.parts.counters.unexpected == {Place.MOVE: 1}
    assert two.here is here
    two.produce()


def move_without_flush(two: TwoDirectories, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition is in its new directory, and no descriptor is left with which to flush it there."""

    def refused(_work: object, done: Callable[[OSError], None]) -> None:
        done(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))

    monkeypatch.setattr(two.broker.parts.moves._moving_parts().flushes, "run", refused)
    # Else it would all be on the disk by then.
    monkeypatch.setattr(partition_move, "flush", lambda _: None)
    two.produce(4)
    there = two.elsewhere
    assert two.begin() == ErrorCode.NONE
    two.broker.run_until(lambda: two.here is there)
    assert sorted(map(len, two.names())) == [1, 1]


def test_a_topic_can_be_deleted_whose_moved_log_cannot_be_flushed(
    two: TwoDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_without_flush(two, monkeypatch)
    two.broker.delete("t")
    assert two.names() == [[], []]
    assert two.broker.parts.moves.under_way == 0


def test_a_broker_stops_whose_moved_log_cannot_be_flushed(two: TwoDirectories, monkeypatch: pytest.MonkeyPatch) -> None:
    move_without_flush(two, monkeypatch)
    before, place = two.values(), two.here.path
    two.broker.restart()
    assert (two.values(), two.here.path) == (before, place)
    assert sorted(map(len, two.names())) == [0, 1]


def test_the_rate_can_be_set_while_the_broker_runs(two: TwoDirectories) -> None:
    moves: Moves = two.broker.parts.moves
    moves.settings_changed(resolve_broker(sets={"replica.alter.log.dirs.io.max.bytes.per.second": "1"}))
    two.produce(3)
    assert two.begin_and_hold() == 2
    two.finish()
    assert two.broker.parts.counters.moved_log_bytes == two.partition.log.size_bytes()
