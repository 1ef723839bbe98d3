"""What holds of a pass as a whole: where it ends, what it knows, what it leaves of batches and reads of the disk."""

from dataclasses import fields
from pathlib import Path

import pytest

from lamina.cleaning.contract import Plan
from lamina.records.batch import Codec, read_header
from tests.cleaning.passes import Way, install, plan_of, run_pass
from tests.compaction.model import Segment
from tests.compaction.story import START_MS, Story


def clean(
    directory: Path, story: Story, way: Way, first_dirty: int = 0, **changes: object
) -> tuple[int, list[Segment]]:
    """One pass, put in place: the offset at which it ended, and what it left."""
    plan = plan_of(directory, story, story.pass_at(first_dirty, 1000, frozenset()), **changes)
    manifest, new = run_pass(plan, way)
    install(story, plan, new)
    return manifest.end_offset, new


@pytest.mark.parametrize("way", Way)
def test_facts_38_and_39_a_pass_ends_at_the_first_uncleanable_segment_whatever_gaps_are_before_it(
    tmp_path: Path, way: Way
) -> None:
    story = Story()
    story.write([(b"a", b"1")])
    story.skip(100)
    story.roll()
    story.write([(b"a", b"2")])
    story.skip(1000)
    story.roll()
    end_offset, new = clean(tmp_path, story, way)
    assert end_offset == story.segments[-1].base_offset == 1102
    assert [len(segment.batches) for segment in new] == [1]


@pytest.mark.parametrize("way", Way)
def test_fact_40_a_pass_knows_no_key_of_the_pass_before(tmp_path: Path, way: Way) -> None:
    long, short = Story(), Story()
    for number in range(9):
        long.write([(b"a", b"%d" % number)])
    short.write([(b"a", b"only")])
    for story in (long, short):
        story.roll()
    clean(tmp_path, long, way)
    _, (left,) = clean(tmp_path, short, way)
    assert left.data == short.segments[0].data != b""
    # Nor when the same log is cleaned again from further on: what is clean supersedes nothing.
    long.write([(b"b", b"1")])
    long.roll()
    _, (left,) = clean(tmp_path, long, way, first_dirty=9)
    assert [read_header(batch).base_offset for batch in left.batches] == [8, 9]


@pytest.mark.parametrize("way", Way)
def test_fact_46_every_batch_that_is_left_is_one_batch_that_was_there(tmp_path: Path, way: Way) -> None:
    story = Story()
    for start in range(0, 60, 6):
        story.write([(b"%d" % (number * 7 % 20), b"v" * number) for number in range(start, start + 6)])
        if start % 18 == 0:
            story.roll()
    story.roll()
    before = [read_header(batch) for segment in story.segments for batch in segment.batches]
    _, new = clean(tmp_path, story, way)
    after = [read_header(batch) for segment in new for batch in segment.batches]
    ranges = [(header.base_offset, header.last_offset) for header in after]
    assert ranges == [
        (header.base_offset, header.last_offset)
        for header in before
        if (header.base_offset, header.last_offset) in ranges
    ]
    assert len(ranges) < len(before)
    assert sum(header.record_count for header in after) == 20
    assert any(header.record_count < 6 for header in after)


@pytest.mark.parametrize("way", Way)
def test_fact_64_now_is_one_instant_for_the_whole_pass_and_comes_with_the_plan(tmp_path: Path, way: Way) -> None:
    """Years ago, as any clock of the job would say; and the same for every group."""
    story = Story()
    for key in (b"a", b"b", b"c"):
        story.write([(key, None), (key + b"2", b"v")])
        story.roll()
    _, new = clean(tmp_path, story, way, segment_bytes=1)
    assert [read_header(segment.batches[0]).delete_horizon_ms for segment in new] == 3 * [START_MS + 1000]
    story.now_ms = START_MS + 999
    _, new = clean(tmp_path, story, way, segment_bytes=1)
    assert [read_header(segment.batches[0]).record_count for segment in new] == [2, 2, 2]


@pytest.mark.parametrize("codec", Codec)
def test_fact_71_a_rebuilt_batch_keeps_its_own_codec_whatever_the_topics_is(tmp_path: Path, codec: Codec) -> None:
    """No plan says what ``compression.type`` is."""
    story = Story()
    story.write([(b"a", b"1" * 500), (b"b", b"2" * 500)], codec=codec)
    story.write([(b"a", b"3")], codec=Codec.NONE)
    story.roll()
    _, (new,) = clean(tmp_path, story, Way.ONE_TASK)
    assert [(read_header(batch).codec_id, read_header(batch).record_count) for batch in new.batches] == [
        (codec, 1),
        (0, 1),
    ]
    assert not [field.name for field in fields(Plan) if "compression" in field.name or "codec" in field.name]


def test_fact_97_what_is_read_for_keys_and_for_copying_and_what_is_written_counts(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1" * 100)])
    story.write([(b"a", b"2" * 100)])
    story.roll()
    spent: list[int] = []
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()))
    manifest, (new,) = run_pass(plan, meter=spent.append)
    size_bytes = len(story.segments[0].data)
    headers, keys, copying = size_bytes, size_bytes, size_bytes
    assert manifest.bytes_read == keys + copying
    assert sum(spent) == headers + keys + copying + len(new.data)


def states_at_one_instant(directory: Path, story: Story, way: Way, retention: int) -> list[list[tuple[int, bool]]]:
    """What each pass leaves while the clock stands still, until one changes nothing: offset of every batch, and
    whether it has a delete horizon."""
    seen: list[list[tuple[int, bool]]] = []
    while True:
        before = [segment.data for segment in story.cleanable]
        plan = plan_of(directory, story, story.pass_at(0, retention, frozenset({11})))
        _, new = run_pass(plan, way)
        install(story, plan, new)
        headers = [read_header(batch) for segment in new for batch in segment.batches]
        seen.append([(header.base_offset, header.delete_horizon_ms is not None) for header in headers])
        if [segment.data for segment in new] == before:
            return seen[:-1]


def a_tombstone_in_a_transaction() -> Story:
    """Offset 0 the value, 1 the tombstone, 2 its marker, 3 another key."""
    story = Story()
    story.write([(b"a", b"1")])
    story.write([(b"a", None)], producer=11, transactional=True)
    story.end(11, commit=True)
    story.write([(b"z", b"last")])
    story.roll()
    return story


@pytest.mark.parametrize("way", Way)
def test_without_retention_a_tombstone_in_a_transaction_takes_four_passes_to_go_with_its_marker(
    tmp_path: Path, way: Way
) -> None:
    """Facts 52, 66, 68 and 69: a tombstone outlives the pass that gives it its horizon; a marker is not discardable
    in the pass that removes its last batch, for that was still met; and then it outlives the pass of its own horizon.
    """
    assert states_at_one_instant(tmp_path, a_tombstone_in_a_transaction(), way, retention=0) == [
        [(1, True), (2, False), (3, False)],
        [(2, False), (3, False)],
        [(2, True), (3, False)],
        [(3, False)],
    ]


@pytest.mark.parametrize("way", Way)
def test_with_retention_a_log_is_settled_after_two_passes_while_the_clock_stands_still(
    tmp_path: Path, way: Way
) -> None:
    assert len(states_at_one_instant(tmp_path, a_tombstone_in_a_transaction(), way, retention=1)) == 1
    superseded = Story()
    superseded.write([(b"a", b"1")], producer=11, transactional=True)
    superseded.end(11, commit=True)
    superseded.write([(b"a", b"2")])
    superseded.roll()
    assert states_at_one_instant(tmp_path, superseded, way, retention=1) == [
        [(1, False), (2, False)],
        [(1, True), (2, False)],
    ]
