"""A partition is taken while its broker appends, rolls, deletes, swaps and goes away."""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from lamina.log.backup.copier import BackupError, Step
from lamina.log.backup.partition import TRIES
from lamina.log.files import Disk
from lamina.log.flushing import flush
from lamina.log.identity import write_topic_id
from lamina.log.steps import run_steps
from tests.log.backup.taking import TOPIC_ID, open_taken, take
from tests.log.building import LogBuilder, a_batch, a_log
from tests.log.verify.sample import findings

STEPS = 10
"""More than an undisturbed attempt has."""


def a_source(tmp_path: Path) -> LogBuilder:
    """A log of several segments, flushed but for the end."""
    builder = a_log(tmp_path / "data", segment_bytes=330)
    for number in range(20):
        builder.append(b"k=%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
        if number == 15:
            flush(builder.log)
    assert len(builder.bases()) == 5
    return builder


def bytes_by_offset(builder: LogBuilder) -> dict[int, bytes]:
    return {header.base_offset: data for header, data in builder.batches()}


def append_and_roll(builder: LogBuilder) -> None:
    number = builder.log.log_end_offset
    for sequence in range(number, number + 12):
        builder.append(b"k=%d" % sequence, producer_id=1, producer_epoch=0, base_sequence=sequence)


def remove_two(builder: LogBuilder) -> None:
    """As retention does; the files of the first are gone at once."""
    doomed = list(builder.log.segments)[:2]
    for segment in doomed:
        run_steps(builder.log.delete_oldest(segment, builder.now_ms))
    for path in doomed[0].paths():
        Path(path).unlink(missing_ok=True)


def remove_all_but_a_new_one(builder: LogBuilder) -> None:
    builder.log.roll(builder.now_ms)
    for segment in list(builder.log.segments)[:-1]:
        run_steps(builder.log.delete_oldest(segment, builder.now_ms))


def swap_two(builder: LogBuilder) -> None:
    """Two segments become one that holds the same batches."""
    old = list(builder.log.segments)[1:3]
    keep = [bytearray(data) for base, data in bytes_by_offset(builder).items() if _is_in(old, base)]
    run_steps(builder.log.replace([builder.rewrite(old, keep)], old, builder.now_ms))


def _is_in(segments: list, base: int) -> bool:  # type: ignore[type-arg]
    return bool(segments[0].base_offset <= base < segments[-1].next_offset)


CHANGES = [append_and_roll, remove_two, remove_all_but_a_new_one, swap_two]


@pytest.mark.parametrize("may_link", [True, False], ids=["linked", "copied"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("step", range(STEPS))
def test_whatever_happens_at_whatever_step_a_log_without_holes_is_taken(
    tmp_path: Path, step: int, change: Callable[[LogBuilder], None], may_link: bool
) -> None:
    builder = a_source(tmp_path)
    recovery_point = builder.log.recovery_point
    before = bytes_by_offset(builder)

    def act(number: int, _step: Step) -> None:
        if number == step:
            change(builder)

    taken = take(builder, tmp_path / "backup", act, may_link=may_link, recovery_point=recovery_point)
    assert taken is not None
    assert taken.damage is None
    batches, reason = open_taken(tmp_path / "backup", taken, recovery_point)
    assert reason is None
    known = before | bytes_by_offset(builder)
    offsets = [base for base, _ in batches]
    assert offsets == list(range(taken.segments[0].base_offset, taken.end_offset))
    assert all(known[base] == data for base, data in batches)
    # Nothing that was there at the beginning is lost, but for what retention took from the start.
    assert taken.end_offset >= 20
    if change in (append_and_roll, swap_two):
        assert offsets[0] == 0
    assert [finding for finding in findings(tmp_path / "backup/topic-0") if finding.severity == "error"] == []


def test_an_undisturbed_log_is_linked_below_the_recovery_point_and_copied_above(tmp_path: Path) -> None:
    builder = a_source(tmp_path)
    taken = take(builder, tmp_path / "backup")
    assert taken is not None
    linked = {segment.base_offset for segment in taken.segments if segment.is_linked}
    bases = builder.bases()
    assert linked == {base for base, following in pairwise(bases) if following < 16}
    for base in bases:
        source, copy = builder.file(base, ".log"), tmp_path / f"backup/topic-0/{base:020d}.log"
        assert source.read_bytes() == copy.read_bytes()
        assert source.samefile(copy) == (base in linked)
    assert not (tmp_path / f"backup/topic-0/{bases[-1]:020d}.index").exists()


def test_a_broker_on_what_was_taken_never_writes_to_the_source(tmp_path: Path) -> None:
    """Also if somebody runs it on the backup itself."""
    builder = a_source(tmp_path)
    taken = take(builder, tmp_path / "backup")
    assert taken is not None
    files = {path: path.read_bytes() for path in builder.path.iterdir()}
    copy = LogBuilder(tmp_path / "backup/topic-0", builder.config)
    copy.append_batches(20)
    copy.reopen(clean=False, recovery_point=16)
    copy.append_batches(20)
    assert {path: path.read_bytes() for path in builder.path.iterdir()} == files


@pytest.mark.parametrize("step", range(STEPS))
def test_a_topic_that_is_deleted_is_not_taken_or_taken_whole(tmp_path: Path, step: int) -> None:
    builder = a_source(tmp_path)

    def act(number: int, _step: Step) -> None:
        if number == step:
            builder.path.rename(f"{builder.path}.{'0' * 32}-delete")

    taken = take(builder, tmp_path / "backup", act)
    assert (tmp_path / "backup/topic-0").exists() == (taken is not None)
    if taken is not None:
        batches, _ = open_taken(tmp_path / "backup", taken, 0)
        assert [base for base, _ in batches] == list(range(20))


@pytest.mark.parametrize("step", range(STEPS))
def test_another_topic_of_that_name_is_not_taken_for_it(tmp_path: Path, step: int) -> None:
    builder = a_source(tmp_path)

    def act(number: int, _step: Step) -> None:
        if number == step:
            shutil.rmtree(builder.path)
            another = a_log(tmp_path / "data", segment_bytes=330)
            another.append_batches(20)
            write_topic_id(Disk(), str(builder.path), TOPIC_ID[::-1])

    taken = take(builder, tmp_path / "backup", act)
    assert taken is None or taken.end_offset == 20
    if taken is not None:
        batches, _ = open_taken(tmp_path / "backup", taken, 0)
        assert dict(batches) == bytes_by_offset(builder)


def test_a_batch_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    builder = a_source(tmp_path)
    active = builder.file(builder.bases()[-1], ".log")
    batch = a_batch(b"k=20", base_offset=20)
    with active.open("ab") as file:
        file.write(batch[:-5])
    taken = take(builder, tmp_path / "backup")
    assert taken is not None
    assert (taken.end_offset, taken.damage) == (20, None)


def test_what_a_preallocated_segment_has_in_reserve_is_left_out(tmp_path: Path) -> None:
    builder = a_log(tmp_path / "data", preallocate=True)
    builder.append_batches(3)
    taken = take(builder, tmp_path / "backup")
    assert taken is not None
    assert taken.end_offset == 3
    assert taken.segments[0].size_bytes == builder.log.segments.active.size_bytes < builder.config.segment_bytes


def test_a_bad_batch_among_good_ones_is_taken_as_it_is_and_named(tmp_path: Path) -> None:
    builder = a_source(tmp_path)
    active = builder.file(builder.bases()[-1], ".log")
    data = bytearray(active.read_bytes())
    data[70] ^= 1
    active.write_bytes(data)
    pauses: list[None] = []
    taken = take(builder, tmp_path / "backup", pause=lambda: pauses.append(None))
    assert taken is not None
    assert taken.damage is not None
    assert str(active) in taken.damage
    assert (tmp_path / "backup/topic-0" / active.name).read_bytes() == data
    assert len(pauses) == TRIES - 1


def test_a_partition_that_never_holds_still_is_one_sentence(tmp_path: Path) -> None:
    builder = a_source(tmp_path)

    def act(_number: int, step: Step) -> None:
        if step.what == "taken":
            append_and_roll(builder)
            swap_two(builder)

    with pytest.raises(BackupError, match=f"did not hold still in {TRIES} attempts"):
        take(builder, tmp_path / "backup", act)
    assert not (tmp_path / "backup/topic-0").exists()


def test_a_swap_under_way_is_waited_for_while_a_broker_runs_and_taken_after_a_crash(tmp_path: Path) -> None:
    builder = a_source(tmp_path)
    base = builder.bases()[1]
    for extension in (".log", ".index", ".timeindex"):
        builder.file(base, extension).rename(builder.file(base, extension + ".swap"))
    with pytest.raises(BackupError):
        take(builder, tmp_path / "backup")

    def finish() -> None:
        for extension in (".log", ".index", ".timeindex"):
            if builder.file(base, extension + ".swap").exists():
                builder.file(base, extension + ".swap").rename(builder.file(base, extension))

    taken = take(builder, tmp_path / "crashed", is_running=False)
    assert taken is not None
    batches, _ = open_taken(tmp_path / "crashed", taken, 0)
    assert [base for base, _ in batches] == list(range(20))
    taken = take(builder, tmp_path / "waited", pause=finish)
    assert taken is not None
    batches, _ = open_taken(tmp_path / "waited", taken, 0)
    assert [base for base, _ in batches] == list(range(20))
