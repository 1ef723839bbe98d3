"""Copying a log that is written, cut and shortened meanwhile: what the copy has is a part of the log, or is cut."""

import os
from pathlib import Path
from random import Random

import pytest

from lamina.broker.moving.copying import Cut, copy_range, find_cut, find_gap, is_empty, next_offset, segment_base
from lamina.errors import CorruptMessage
from lamina.log.partition_log import PartitionLog
from tests.log.building import LogBuilder, a_log, batches_of, truncate_log

STORIES = range(10 * max(int(os.environ.get("LAMINA_STORIES", "6")), 1))


class Copying:
    """The steps of a move, one after another on one thread."""

    def __init__(self, tmp_path: Path) -> None:
        self.source = a_log(tmp_path / "source", segment_bytes=500)
        self.target = a_log(tmp_path / "target", segment_bytes=500)
        self._cuts = -1

    @property
    def log(self) -> PartitionLog:
        return self.source.log

    @property
    def copy(self) -> PartitionLog:
        return self.target.log

    def step(self, max_bytes: int = 1) -> bool:
        """Returns whether anything was left to do."""
        log, copy = self.log, self.copy
        cut = find_gap(copy, log)
        if self._cuts != log.cuts:
            cut = find_cut(copy, log)
            if cut is None:
                self._cuts = log.cuts
        if cut is not None:
            self.cut(cut)
            return True
        if copy.log_start_offset < log.log_start_offset <= copy.log_end_offset:
            copy.advance_log_start(log.log_start_offset)
        if copy.log_end_offset == log.log_end_offset:
            return False
        offset = next_offset(copy, log)
        lease = log.read(offset, max_bytes) if offset < log.log_end_offset else None
        if lease is None:
            copy.skip_to(log.log_end_offset, self.source.now_ms)
            return True
        with lease:
            copied = copy_range(lease, segment_base(log, offset), copy, lambda: False, self.source.now_ms)
        if copied.begins_at is not None:
            self.cut(Cut(copied.begins_at, is_whole=True))
        return True

    def cut(self, cut: Cut) -> None:
        is_whole = cut.is_whole or cut.offset < self.copy.segments.first.base_offset
        truncate_log(self.copy, cut.offset, self.source.now_ms, fully=is_whole)

    def finish(self) -> None:
        for _ in range(1000):
            if not self.step():
                assert batches_of(self.copy) == batches_of(self.log)
                assert self.copy.log_start_offset == self.log.log_start_offset
                return
        raise AssertionError("it never ends")


def write(builder: LogBuilder, epoch: int, count: int, rng: Random) -> None:
    for _ in range(count):
        texts = [b"%d=%d" % (rng.randrange(5), rng.randrange(1000)) for _ in range(rng.randint(1, 4))]
        builder.append(*texts, epoch=epoch)


@pytest.mark.random
@pytest.mark.parametrize("seed", STORIES)
def test_whatever_happens_to_the_log_the_copy_ends_as_it_does(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    copying = Copying(tmp_path)
    epoch = 0
    for _ in range(rng.randint(20, 60)):
        log = copying.log
        match rng.choice(("write", "write", "copy", "copy", "copy", "cut", "trim", "anew", "roll")):
            case "write":
                write(copying.source, epoch, rng.randint(1, 5), rng)
            case "copy":
                for _ in range(rng.randint(1, 4)):
                    copying.step(rng.choice((1, 300, 5000)))
            case "cut":
                # As a follower is, after another broker has led.
                first, end = log.segments.first.base_offset, log.log_end_offset
                truncate_log(log, rng.randint(max(first, end - 12), end), copying.source.now_ms)
                epoch += rng.choice((1, 2))
                write(copying.source, epoch, rng.randint(0, 3), rng)
            case "trim":
                log.advance_log_start(rng.randint(log.log_start_offset, log.log_end_offset))
            case "anew":
                truncate_log(log, max(log.log_end_offset + rng.randint(-3, 5), 0), copying.source.now_ms, fully=True)
                epoch += 1
            case _:
                log.roll(copying.source.now_ms)
    copying.finish()
    assert not copying.target.reopen(clean=False, recovery_point=0).truncated_bytes, "it is sound"


def test_an_empty_copy_lacks_nothing_of_a_log_that_begins_anew_below_it(tmp_path: Path) -> None:
    copying = Copying(tmp_path)
    truncate_log(copying.log, 10, copying.source.now_ms, fully=True)
    copying.step()
    truncate_log(copying.log, 5, copying.source.now_ms, fully=True)
    copying.source.append_batches(8)
    copying.finish()


def test_a_copy_that_ends_where_another_log_begins_inside_a_batch_begins_anew(tmp_path: Path) -> None:
    """Nothing in it is a part of that log, whose first batch begins within the copy."""
    copying = Copying(tmp_path)
    copying.source.append(b"a=1", b"b=1", b"c=1", epoch=1)
    while copying.step():
        pass
    truncate_log(copying.log, 0, copying.source.now_ms)
    for _ in range(2):
        copying.source.append(b"a=2", b"b=2", epoch=2)
    copying.log.advance_log_start(3)
    copying.finish()


def test_what_was_cut_while_it_was_read_is_not_copied(tmp_path: Path) -> None:
    copying = Copying(tmp_path)
    copying.source.append_batches(3)
    lease = copying.log.read(0, 1)
    assert lease is not None
    with lease:
        assert copy_range(lease, 0, copying.copy, lambda: True, 0).size_bytes == 0
    assert is_empty(copying.copy)


def test_a_batch_that_does_not_follow_is_no_part_of_a_copy(tmp_path: Path) -> None:
    copying = Copying(tmp_path)
    copying.source.append_batches(3)
    copying.step()
    lease = copying.log.read(0, 1)
    assert lease is not None
    with lease, pytest.raises(CorruptMessage):
        copy_range(lease, 0, copying.copy, lambda: False, 0)
