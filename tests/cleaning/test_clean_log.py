"""A pass over random logs does what the slow model does, batch by batch, pass after pass."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.records.batch import read_header
from lamina.records.record import Record, read_records
from tests.cleaning.passes import Way, assert_cleaned, install, plan_of, run_pass
from tests.compaction.model import LIMIT_BYTES, Segment, clean
from tests.compaction.story import Step, Story, steps, take, writing_steps

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def committed(segments: list[Segment], story: Story) -> list[Record]:
    """What a committed reader sees of some segments."""
    found = []
    for segment in segments:
        for batch in segment.batches:
            header = read_header(batch)
            aborted = header.is_transactional and any(
                a.producer_id == header.producer_id and a.first_offset <= header.last_offset < a.last_offset
                for a in story.aborts
            )
            if not header.is_control and not aborted:
                found += read_records(batch, 0, header, LIMIT_BYTES)
    return found


def table_of(records: list[Record]) -> dict[bytes, bytes]:
    """The latest value of every key."""
    latest = {record.key: record.value for record in records if record.key is not None}
    return {key: value for key, value in latest.items() if value is not None}


def check_pass(
    directory: Path,
    story: Story,
    first_dirty: int,
    retention: int,
    forgotten: frozenset[int],
    way: Way = Way.ONE_TASK,
    **changes: object,
) -> int:
    """One pass compared with the model and held to the invariants; the new first dirty offset."""
    p = story.pass_at(first_dirty, retention, forgotten)
    if not story.cleanable:
        return first_dirty
    before = committed(story.segments, story)
    expected = clean(story.cleanable, story.aborts, p)
    plan = plan_of(directory, story, p, **changes)
    manifest, new = run_pass(plan, way, threads=2)
    assert_cleaned(plan, manifest, new, expected)
    assert manifest.end_offset == p.end_offset
    install(story, plan, new)
    after = committed(story.segments, story)
    assert table_of(after) == table_of(before)
    places = {record.offset: record for record in before}
    assert [places[record.offset] for record in after] == after  # keys, values, headers and timestamps as they were
    assert sorted(record.offset for record in after) == [record.offset for record in after]
    return p.end_offset


def live(directory: Path, life: list[Step], way: Way) -> tuple[Story, int]:
    story, first_dirty = Story(), 0
    for name, argument in life:
        if name == "pass":
            dirty_from = 0 if argument["dirty_from_start"] else first_dirty
            first_dirty = check_pass(
                directory,
                story,
                min(dirty_from, story.first_uncleanable_offset),
                argument["delete_retention_ms"],
                argument["forgotten"],
                way,
                segment_bytes=argument["segment_bytes"],
            )
        else:
            take(story, (name, argument))
    return story, first_dirty


@pytest.mark.parametrize("way", Way)
@SLOW
@given(life=steps())
def test_every_pass_of_a_random_life_does_what_the_model_does(way: Way, life: list[Step]) -> None:
    with TemporaryDirectory() as directory:
        live(Path(directory), life, way)


@SLOW
@given(st.lists(writing_steps(), max_size=30), st.sampled_from([0, 1000]))
def test_with_the_clock_standing_still_a_log_stops_changing(life: list[Step], retention: int) -> None:
    """After two passes: one for records, one for the horizons of markers (fact 69). Without retention a horizon has
    passed when it is set, and it takes two more: ``test_whole_pass.py`` has such a log."""
    with TemporaryDirectory() as directory:
        story = Story()
        for step in life:
            take(story, step)
        for _ in range(2 if retention else 4):
            check_pass(Path(directory), story, 0, retention, frozenset())
        settled = [segment.data for segment in story.segments]
        check_pass(Path(directory), story, 0, retention, frozenset())
        assert [segment.data for segment in story.segments] == settled
