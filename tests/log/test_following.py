"""A follower that appends what its leader wrote has the same log: the same bytes in the same files."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import CorruptMessage
from lamina.log.flushing import close_cleanly
from lamina.log.steps import run_steps
from tests.examples import examples
from tests.log.building import NOW_MS, LogBuilder, a_batch, a_log
from tests.log.disk import RecordingDisk
from tests.log.story import Story


def files(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in sorted(path.iterdir()) if not one.name.endswith(".deleted")}


def follow(leader: LogBuilder, follower: LogBuilder, max_bytes: int) -> None:
    """Fetch and append until nothing is missing; what is fetched may end inside a batch."""
    while follower.log.log_end_offset < leader.log.log_end_offset:
        follower.log.append_as_follower(leader.read(follower.log.log_end_offset, max_bytes), NOW_MS)


def write_something(builder: LogBuilder, rng: Random, batches: int) -> None:
    """Records, epochs, producers and transactions; each batch of at most three records."""
    sequences: dict[int, int] = {}
    open_transactions: set[int] = set()
    epoch = 0
    for _ in range(batches):
        epoch += rng.random() < 0.1
        producer_id = rng.choice([-1, -1, 1, 2, 3])
        if producer_id in open_transactions and rng.random() < 0.4:
            open_transactions.discard(producer_id)
            (builder.abort if rng.random() < 0.5 else builder.commit)(producer_id)
            continue
        texts = [b"k=" + rng.randbytes(rng.randint(0, 60))] * rng.randint(1, 3)
        if producer_id < 0:
            builder.append(*texts, epoch=epoch, timestamp=NOW_MS + rng.randint(-50, 50))
            continue
        sequence = sequences.get(producer_id, 0)
        sequences[producer_id] = sequence + len(texts)
        is_transactional = producer_id > 1
        if is_transactional:
            open_transactions.add(producer_id)
        builder.append(
            *texts,
            epoch=epoch,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32), batches=st.integers(1, 60), max_bytes=st.integers(1, 2000))
def test_a_follower_has_its_leaders_files_byte_for_byte(seed: int, batches: int, max_bytes: int) -> None:
    with TemporaryDirectory() as scratch:
        leader = a_log(Path(scratch) / "leader", segment_bytes=700, segment_ms=10**15)
        follower = a_log(Path(scratch) / "follower", segment_bytes=700, segment_ms=10**15)
        write_something(leader, Random(seed), batches)
        follow(leader, follower, max_bytes)
        assert follower.log.producers.first_unstable_offset() == leader.log.producers.first_unstable_offset()
        assert follower.log.epochs.entries == leader.log.epochs.entries
        for builder in (leader, follower):
            close_cleanly(builder.log)
        assert files(follower.path) == files(leader.path)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), cut=st.integers(0, 60), max_bytes=st.integers(1, 2000))
def test_a_follower_that_was_cut_back_and_follows_again_holds_the_same_batches_and_state(
    seed: int, cut: int, max_bytes: int
) -> None:
    with TemporaryDirectory() as scratch:
        leader = a_log(Path(scratch) / "leader", segment_bytes=700, segment_ms=10**15)
        follower = a_log(Path(scratch) / "follower", segment_bytes=700, segment_ms=10**15)
        write_something(leader, Random(seed), 40)
        follow(leader, follower, max_bytes)
        follower.log.begin_truncation(cut)
        run_steps(follower.log.finish_truncation(NOW_MS))
        follow(leader, follower, max_bytes)
        assert follower.batches() == leader.batches()
        assert follower.log.epochs.entries == leader.log.epochs.entries
        end = leader.log.log_end_offset
        assert follower.log.segments.aborted_between(0, end) == leader.log.segments.aborted_between(0, end)
        for builder in (leader, follower):
            builder.log.producers.high_watermark_moved(0)
        assert follower.log.producers.first_unstable_offset() == leader.log.producers.first_unstable_offset()
        assert not follower.reopen(clean=False, recovery_point=0).truncated_bytes


def test_a_leaders_gaps_are_the_followers(tmp_path: Path) -> None:
    """A cleaner took what was in between, before the follower came."""
    follower = a_log(tmp_path)
    for base_offset in (3, 8, 2**31 + 20):
        batch = bytes(a_batch(b"k=v", base_offset=base_offset, leader_epoch=4))
        follower.log.append_as_follower(batch, NOW_MS)
    assert [record.offset for record in follower.records()] == [3, 8, 2**31 + 20]
    assert follower.bases() == [0, 2**31 + 20]
    assert not follower.reopen(clean=False, recovery_point=0).truncated_bytes


def test_a_batch_below_the_end_is_refused_and_nothing_of_it_is_written(tmp_path: Path) -> None:
    follower = a_log(tmp_path)
    follower.log.append_as_follower(bytes(a_batch(b"a=1", b"b=2", leader_epoch=0)), NOW_MS)
    with pytest.raises(CorruptMessage, match="ends at 2, a batch for offset 1 came"):
        follower.log.append_as_follower(bytes(a_batch(b"c=3", base_offset=1, leader_epoch=0)), NOW_MS)
    assert follower.texts() == [b"a=1", b"b=2"]


def test_what_a_follower_of_a_whole_life_holds_survives_a_crash(tmp_path: Path) -> None:
    """The batches of a log that was rolled, cut and cleaned, with all that its cleaner left out."""
    root = tmp_path / "live"
    root.mkdir()
    disk = RecordingDisk(str(root))
    story = Story(disk, f"{root}/data", Random(7), compact=True, count_ops=lambda: len(disk.ops)).live(60)
    follower = a_log(tmp_path, segment_bytes=700)
    for batch in story.known.present:
        follower.log.append_as_follower(batch.data, NOW_MS)
    held = [(header.base_offset, data) for header, data in follower.batches()]
    assert held == [(batch.base_offset, batch.data) for batch in story.known.present]
    follower.reopen(clean=False, recovery_point=0)
    assert [(header.base_offset, data) for header, data in follower.batches()] == held
