"""The rules of facts 50-73, each through compiled code and both ways: in one task, and through the shuffle.

One small log for each rule, so that a rule that is broken in ``compaction`` fails here whichever way a pass takes;
``mutants.py`` shows that it does.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.cleaning.contract import Manifest
from lamina.records.batch import HEADER_BYTES, read_header
from lamina.records.record import Record, build_batch, read_records
from tests.cleaning.passes import Way, install, plan_of, run_pass
from tests.compaction.model import LIMIT_BYTES, Segment
from tests.compaction.story import START_MS, Story

Clean = Callable[..., tuple[Manifest, list[Segment]]]


@pytest.fixture(params=Way)
def clean(request: pytest.FixtureRequest, tmp_path: Path) -> Clean:
    def run(
        story: Story, *, first_dirty: int = 0, retention: int = 1000, producers_are_active: bool = False
    ) -> tuple[Manifest, list[Segment]]:
        """One pass, put in place."""
        gone = frozenset() if producers_are_active else frozenset(story.writers)
        plan = plan_of(tmp_path, story, story.pass_at(first_dirty, retention, gone))
        manifest, new = run_pass(plan, request.param)
        install(story, plan, new)
        return manifest, new

    return run


def a_log(*writes: list[tuple[bytes | None, bytes | None]]) -> Story:
    """One batch a write, and one of key ``z`` at the end, which is protected as the last of the pass."""
    story = Story()
    for pairs in writes:
        story.write(pairs)
    return ended(story)


def ended(story: Story) -> Story:
    story.write([(b"z", b"last")])
    story.roll()
    return story


def left(segments: list[Segment]) -> list[tuple[int, int]]:
    """Base offset and number of records of every batch."""
    headers = [read_header(batch) for segment in segments for batch in segment.batches]
    return [(header.base_offset, header.record_count) for header in headers]


def offsets(segments: list[Segment]) -> list[int]:
    batches = [batch for segment in segments for batch in segment.batches]
    return [record.offset for batch in batches for record in read_records(batch, 0, read_header(batch), LIMIT_BYTES)]


def horizons(segments: list[Segment]) -> list[int | None]:
    return [read_header(batch).delete_horizon_ms for segment in segments for batch in segment.batches]


# A record


def test_facts_34_and_63_the_newest_record_of_a_key_survives_and_older_ones_do_not(clean: Clean) -> None:
    story = a_log([(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")], [(b"a", b"3"), (b"", b"x"), (b"", b"y")])
    manifest, new = clean(story)
    assert offsets(new) == [1, 3, 5, 6]
    assert (manifest.dropped.superseded, manifest.keys) == (3, 4)


def test_facts_33_and_34_only_dirty_records_supersede(clean: Clean) -> None:
    story = a_log([(b"a", b"1")], [(b"a", b"2")], [(b"b", b"1")])
    assert offsets(clean(story, first_dirty=2)[1]) == [0, 1, 2, 3]
    assert offsets(clean(story, first_dirty=1)[1]) == [1, 2, 3]


def test_fact_62_a_record_without_a_key_goes_and_is_counted(clean: Clean) -> None:
    manifest, new = clean(a_log([(None, b"1"), (b"a", b"2"), (None, None)]))
    assert offsets(new) == [1, 3]
    assert manifest.dropped.without_key == 2


def test_fact_63_an_empty_value_is_a_value(clean: Clean) -> None:
    story = a_log([(b"a", b"1")], [(b"a", b"")])
    for _ in range(2):
        manifest, new = clean(story, retention=0)
        assert offsets(new) == [1, 2]
        assert manifest.horizons.batches == 0


def test_facts_63_66_and_68_a_tombstone_gets_a_horizon_and_goes_when_it_has_come(clean: Clean) -> None:
    story = a_log([(b"a", b"1"), (b"b", None)])
    for now, retention, expected in ((0, 1000, [0, 1, 2]), (999, 0, [0, 1, 2]), (1000, 0, [0, 2]), (9999, 0, [0, 2])):
        story.now_ms = START_MS + now
        _, new = clean(story, retention=retention)
        assert offsets(new) == expected
        assert horizons(new) == [START_MS + 1000, None]


def test_fact_63_a_value_beside_a_tombstone_outlives_the_horizon(clean: Clean) -> None:
    story = a_log([(b"a", b"1"), (b"b", None)])
    clean(story, retention=0)
    manifest, new = clean(story, retention=0)
    assert offsets(new) == [0, 2]
    assert (manifest.dropped.expired_tombstones, manifest.dropped.superseded) == (1, 0)


def test_a_tombstone_that_is_superseded_does_not_wait_for_its_horizon(clean: Clean) -> None:
    manifest, new = clean(a_log([(b"a", None)], [(b"a", b"2")]))
    assert offsets(new) == [1, 2]
    assert manifest.horizons.set_now == 0


def test_facts_54_and_60_a_control_record_of_another_kind_survives_everything(clean: Clean) -> None:
    """Even one without a value in a batch whose horizon has passed."""
    story = Story()
    unknown = Record(0, START_MS, b"\x00\x00\x00\x63", None)
    story.segments[0].batches.append(bytes(build_batch([unknown], is_control=True, delete_horizon_ms=START_MS)))
    story.next_offset = 1
    ended(story)
    for _ in range(2):
        manifest, new = clean(story, retention=0)
        assert offsets(new) == [0, 1]
        assert manifest.dropped.expired_tombstones == 0


# A batch


def test_facts_58_and_73_a_batch_without_survivors_goes_unless_it_is_its_producers_last(clean: Clean) -> None:
    story = Story()
    for value in (b"1", b"2"):
        story.write([(b"a", value)], producer=11)
    story.write([(b"a", b"3")])
    ended(story)
    _, new = clean(story, producers_are_active=True)
    assert left(new) == [(1, 0), (2, 1), (3, 1)]
    assert len(new[0].batches[0]) == HEADER_BYTES
    assert left(clean(story)[1]) == [(2, 1), (3, 1)]  # fact 57: the producer is forgotten


def test_fact_56_the_last_batch_of_a_pass_keeps_its_header(clean: Clean) -> None:
    story = a_log()
    story.segments[-2].batches.clear()
    story.write([(None, b"1")])
    story.roll()
    assert left(clean(story)[1]) == [(1, 0)]


def test_fact_65_a_batch_that_keeps_everything_is_copied_and_another_is_rebuilt(clean: Clean) -> None:
    story = a_log([(b"a", b"1"), (b"b", b"1")], [(b"c", b"1"), (b"a", b"2")])
    before = list(story.segments[0].batches)
    _, new = clean(story)
    assert left(new) == [(0, 1), (2, 2), (4, 1)]
    assert new[0].batches[1:] == before[1:]
    assert read_header(new[0].batches[0]).base_timestamp == START_MS + 1


def test_fact_65_a_batch_is_copied_even_where_rebuilding_it_would_write_other_bytes(clean: Clean) -> None:
    """Its records have times of their own below the broker's: nobody reads them, and they stay."""
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"1")], log_append_time=True, timestamp_step=10)
    ended(story)
    before = list(story.segments[0].batches)
    assert clean(story)[1][0].batches == before


def test_fact_66_a_batch_that_only_loses_records_gets_no_horizon(clean: Clean) -> None:
    _, new = clean(a_log([(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")]))
    assert horizons(new) == [None, None, None]


def test_fact_66_without_an_end_of_retention_the_horizon_never_comes(clean: Clean) -> None:
    _, new = clean(a_log([(b"a", None)]), retention=2**63 - 1)
    assert horizons(new) == [2**63 - 1, None]


# Transactions


def a_transaction(*, commit: bool, bumps_epoch: bool = False, then: bytes | None = b"2") -> Story:
    """Producer 11 writes ``a`` and ends; ``then`` somebody else writes ``a``."""
    story = Story()
    story.write([(b"a", b"0")])
    story.write([(b"a", b"1")], producer=11, transactional=True)
    story.end(11, commit=commit, bumps_epoch=bumps_epoch)
    if then is not None:
        story.write([(b"a", then)])
    return ended(story)


def test_facts_35_and_51_what_was_aborted_goes_and_supersedes_nothing(clean: Clean) -> None:
    manifest, new = clean(a_transaction(commit=False, then=None))
    assert offsets(new) == [0, 2, 3]
    assert manifest.dropped.aborted == 1


def test_fact_50_an_abort_in_the_active_segment_counts(clean: Clean) -> None:
    story = Story()
    story.write([(b"a", b"0")])
    story.write([(b"a", b"1")], producer=11, transactional=True)
    story.roll()
    story.end(11, commit=False)
    _, new = clean(story)
    assert left(new) == [(0, 1), (1, 0)]


def test_fact_50_aborted_transactions_may_end_in_another_order_than_they_began(clean: Clean) -> None:
    """The transaction index is in the order of their ends."""
    story = Story()
    story.write([(b"a", b"1")], producer=11, transactional=True)
    story.write([(b"b", b"1")], producer=12, transactional=True)
    story.end(12, commit=False)
    story.end(11, commit=False)
    manifest, new = clean(ended(story))
    assert offsets(new) == [2, 3, 4]
    assert manifest.dropped.aborted == 2


def test_fact_50_another_producers_batches_and_later_ones_are_not_aborted(clean: Clean) -> None:
    story = Story()
    story.write([(b"a", b"1")], producer=11, transactional=True)
    story.write([(b"b", b"1")], producer=12, transactional=True)
    story.end(11, commit=False)
    story.end(12, commit=True)
    story.write([(b"c", b"1")], producer=11, transactional=True)
    story.end(11, commit=True)
    assert offsets(clean(ended(story))[1]) == [1, 2, 3, 4, 5, 6]


def test_facts_52_and_69_a_commit_marker_outlives_its_data_by_its_horizon(clean: Clean) -> None:
    story = a_transaction(commit=True)
    seen = [clean(story, retention=0) for _ in range(3)]
    assert [offsets(new) for _, new in seen] == [[2, 3, 4], [2, 3, 4], [3, 4]]
    assert [manifest.horizons.set_now for manifest, _ in seen] == [0, 1, 0]
    assert seen[2][0].dropped.expired_markers == 1


def test_fact_52_a_commit_marker_stays_without_a_horizon_while_its_data_does(clean: Clean) -> None:
    story = a_transaction(commit=True, then=None)
    for _ in range(3):
        _, new = clean(story, retention=0)
        assert offsets(new) == [1, 2, 3]
        assert horizons(new) == [None, None, None]


def test_facts_53_and_69_an_abort_marker_and_its_entry_outlive_their_data(clean: Clean) -> None:
    """Fact 76: what is in the new transaction index comes from there alone."""
    story = a_transaction(commit=False, then=None)
    seen = []
    for _ in range(3):
        manifest, new = clean(story, retention=0)
        seen.append((offsets(new), manifest.horizons.set_now, len(new[0].aborts)))
    assert seen == [([0, 2, 3], 0, 1), ([0, 2, 3], 1, 0), ([0, 3], 0, 0)]


def test_fact_55_a_marker_whose_horizon_is_to_come_stays(clean: Clean) -> None:
    story = a_transaction(commit=True)
    clean(story)
    clean(story)
    for now, expected in ((999, [2, 3, 4]), (1000, [3, 4])):
        story.now_ms = START_MS + now
        assert offsets(clean(story)[1]) == expected


def test_facts_56_and_59_a_marker_that_began_an_epoch_is_its_producers_last_batch(clean: Clean) -> None:
    story = a_transaction(commit=True, bumps_epoch=True)
    for _ in range(4):
        _, new = clean(story, retention=0, producers_are_active=True)
    assert left(new) == [(2, 0), (3, 1), (4, 1)]
    assert left(clean(story, retention=0)[1]) == [(3, 1), (4, 1)]


def test_fact_54_a_control_batch_without_records_stays_only_while_it_is_protected(clean: Clean) -> None:
    story = a_transaction(commit=True, bumps_epoch=True)
    for _ in range(3):
        clean(story, retention=0, producers_are_active=True)
    header = read_header(story.segments[0].batches[0])
    assert (header.is_control, header.record_count, header.delete_horizon_ms) == (True, 0, None)
    for _ in range(2):
        assert left(clean(story, producers_are_active=True)[1])[0] == (2, 0)
