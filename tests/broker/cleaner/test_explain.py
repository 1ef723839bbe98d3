"""Why a record is still there, and when it can go at the earliest."""

from itertools import count
from pathlib import Path
from uuid import UUID

import pytest

from lamina.broker.cleaner.blockers import BlockerKind, find_blockers, moment_text, why_nothing_is_cleanable
from lamina.broker.cleaner.candidates import inspect
from lamina.broker.cleaner.explain import Explanation, PartitionView, explain
from lamina.broker.cleaner.partition_states import FailedPass, State
from lamina.broker.cleaner.record_search import (
    FoundRecord,
    RecordSearch,
    SearchAt,
    SearchLastOf,
    SearchResult,
    SegmentRange,
)
from lamina.broker.counters import TopicCounters
from lamina.broker.partitions.cluster import Cluster, OwnCluster
from lamina.broker.partitions.free_space import FreeSpace
from lamina.broker.partitions.partition import Partition
from lamina.clocks import SYSTEM_CLOCKS
from lamina.image.topic import new_partition
from lamina.log.flushing import Flusher
from tests.log.building import LIMIT_BYTES, NOW_MS, LogBuilder, a_log
from tests.log.story import run_inline, told_inline

HOUR_MS = 3_600_000


class Explaining:
    def __init__(self, builder: LogBuilder) -> None:
        self.builder = builder

    @property
    def partition(self) -> Partition:
        log = self.builder.log
        partition = Partition(
            log,
            UUID(int=1),
            Flusher(log, run_inline, told_inline()),
            LIMIT_BYTES,
            TopicCounters(),
            FreeSpace(str(self.builder.path)),
            Cluster(1, 30_000, OwnCluster()),
            SYSTEM_CLOCKS,
        )
        partition.lead(new_partition((1,)))
        return partition

    def view(self, checkpoint: int | None = None, **changed: object) -> PartitionView:
        facts = {
            "candidate": inspect(self.partition, checkpoint, NOW_MS),
            "state": State.NONE,
            "failed_pass": None,
            "why_not": None,
            "expires_idle": False,
            "now_ms": NOW_MS,
        }
        return PartitionView(**(facts | changed))  # type: ignore[arg-type]

    def search(self, wanted: int | bytes, deadline: float = 1000.0) -> SearchResult:
        """With a clock that goes on by one at every batch."""
        log = self.builder.log
        segments = log.segments.between(wanted if isinstance(wanted, int) else 0, log.log_end_offset)
        ends = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
        ranges = [
            SegmentRange(segment.base_offset, end, segment.lease(0, segment.size_bytes))
            for segment, end in zip(segments, ends, strict=True)
        ]
        aborted = [entry for segment in log.segments for entry in segment.aborted.entries()]
        producers = log.producers.producers.values()
        open_since = {
            one.producer_id: one.current_txn_first_offset
            for one in producers
            if one.current_txn_first_offset is not None
        }
        clock = count(1.0)

        def is_over() -> bool:
            return next(clock) > deadline

        start, end = log.segments.first.base_offset, log.log_end_offset
        search: RecordSearch
        if isinstance(wanted, int):
            search = SearchAt(wanted, end, aborted, open_since, LIMIT_BYTES, is_over)
        else:
            search = SearchLastOf(wanted, start, end, aborted, open_since, LIMIT_BYTES, is_over)
            ranges.reverse()
        for one in ranges:
            if search.left and not search.is_done:
                search.read([one])
            one.lease.give_back()
        return search.result

    def find(self, wanted: int | bytes) -> FoundRecord | None:
        search = self.search(wanted)
        assert search.unsearched is None
        return search.found

    def why(self, wanted: int | bytes, checkpoint: int | None = None, **changed: object) -> Explanation:
        found = self.find(wanted)
        assert found is not None
        return explain(found, self.view(checkpoint, **changed))


@pytest.fixture
def log(tmp_path: Path) -> Explaining:
    """Offsets 0 and 1 in a closed segment, 2 in the active one."""
    builder = a_log(tmp_path, compact=True, delete=False, delete_retention_ms=HOUR_MS)
    builder.append(b"a=0", b"b=0")
    builder.log.roll(builder.now_ms)
    builder.append(b"a=1")
    return Explaining(builder)


def test_the_latest_of_its_key_stays(log: Explaining) -> None:
    assert log.why(b"b") == Explanation(False, ("it is the latest of its key and stays until a newer one comes",), None)


def test_a_record_whose_successor_is_in_the_active_segment_waits_for_that_to_close(log: Explaining) -> None:
    told = log.why(0)
    assert told.goes
    assert told.reasons[0] == "a newer record of its key is at offset 2"
    assert "from offset 2 on are in the active segment" in told.reasons[1]
    log.builder.log.roll(NOW_MS)
    assert log.why(0).reasons[1] == "the next round of the cleaner takes this log"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"state": State.IN_PROGRESS}, "a pass is under way"),
        ({"state": State.PAUSED}, "its cleaning is paused"),
        ({"why_not": "numba not installed"}, "no topic is being compacted: numba not installed"),
        (
            {"failed_pass": FailedPass("damaged", True, 1, 0, 1_700_000_060_000)},
            "the last pass failed and is tried again at 2023-11-14T22:14:20Z (in 60 s): damaged",
        ),
    ],
)
def test_what_keeps_the_next_pass_away_is_said(log: Explaining, changed: dict[str, object], sentence: str) -> None:
    log.builder.log.roll(NOW_MS)
    assert log.why(0, None, **changed).reasons[1] == sentence


def test_a_log_that_is_not_dirty_enough_is_said_to_be_so(log: Explaining) -> None:
    log.builder.log.roll(NOW_MS)
    told = log.why(0, checkpoint=2)
    assert told.reasons[1].startswith("the log is not dirty enough: 0.4")
    assert told.reasons[1].endswith("of it is dirty, which has to be more than min.cleanable.dirty.ratio = 0.5")


def test_a_tombstone_waits_for_its_horizon_and_then_for_a_pass(log: Explaining) -> None:
    builder = log.builder
    builder.append(b"b")
    told = log.why(b"b")
    assert "the next pass sets its delete horizon" in told.reasons[0]
    assert told.earliest_ms == NOW_MS + HOUR_MS
    for horizon_ms, words in ((NOW_MS + 5, "stays until"), (NOW_MS, "has passed")):
        found = FoundRecord(3, NOW_MS, b"b", True, False, False, horizon_ms)
        told = explain(found, log.view())
        assert words in told.reasons[0]
        assert told.earliest_ms == horizon_ms
    found = FoundRecord(0, NOW_MS, b"b", True, False, False, NOW_MS)
    assert "nothing in this log is dirty" in explain(found, log.view(checkpoint=2)).reasons[1]
    assert "lamina.cleaner.expire.idle" in explain(found, log.view(checkpoint=2, expires_idle=True)).reasons[1]


def test_a_record_without_key_and_one_of_an_aborted_transaction_go(log: Explaining) -> None:
    builder = log.builder
    builder.append(b"t=1", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.abort(5)
    told = log.why(3)
    assert told.reasons[0] == "it belongs to an aborted transaction, which no committed reader sees"
    assert "it is a transaction's marker" in log.why(4).reasons[0]
    assert explain(FoundRecord(0, NOW_MS, None, False, False, False, None), log.view()).reasons[0] == "it has no key"


def test_an_aborted_record_does_not_count_as_newer(log: Explaining) -> None:
    builder = log.builder
    builder.append(b"b=9", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.abort(5)
    assert not log.why(1).goes
    found = log.find(b"b")
    assert found is not None
    assert found.offset == 1


def test_an_open_transaction_holds_back_all_that_comes_after_it(log: Explaining) -> None:
    builder = log.builder
    builder.append(b"x=1", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.log.roll(NOW_MS)
    builder.append(b"a=3")
    builder.log.roll(NOW_MS)
    blockers = find_blockers(builder.log, log.view().candidate.cleanable, NOW_MS)
    assert [blocker.kind for blocker in blockers] == [BlockerKind.TRANSACTION]
    assert blockers[0].sentence == (
        "producer 5 has a transaction open since offset 3: nothing from offset 2 on, where that segment begins, "
        "can be removed before it ends"
    )
    assert log.why(2).reasons[1] == blockers[0].sentence


def test_what_an_open_transaction_wrote_is_not_yet_newer_and_itself_undecided(log: Explaining) -> None:
    """It may be aborted: then nothing of it counts (facts 35 and 51)."""
    builder = log.builder
    builder.append(b"b=1", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    told = log.why(1)
    assert not told.goes
    assert told.reasons[0].startswith("it is the latest of its key that counts: a newer one at offset 3 belongs to")
    told = log.why(3)
    assert not told.goes
    assert told.reasons == ("it belongs to a transaction that is still open: how that ends decides",)
    builder.commit(5)
    assert log.why(1).reasons[0] == "a newer record of its key is at offset 3"
    assert log.why(3).reasons[0].startswith("it is the latest of its key")


def test_a_search_for_what_came_after_says_where_it_had_no_time_to_look(log: Explaining) -> None:
    search = log.search(0, deadline=1.0)
    assert search.found is not None
    assert search.found.newer == ()
    assert search.unsearched == (2, 3)
    told = explain(search.found, log.view(), search.unsearched)
    assert "did not read offsets 2 to 2:" in told.reasons[0]
    assert "the latest of its key" in told.reasons[1]


def test_a_search_for_a_key_begins_at_the_newest_segment_and_ends_where_it_is(log: Explaining) -> None:
    found, unsearched = log.search(b"a", deadline=1.0)
    assert found is not None
    assert (found.offset, unsearched) == (2, None)
    assert log.search(b"b", deadline=1.0) == (None, (0, 2))
    found, unsearched = log.search(b"b", deadline=3.0)
    assert found is not None
    assert (found.offset, unsearched) == (1, None)


def test_the_lag_says_until_when(tmp_path: Path) -> None:
    builder = a_log(tmp_path, compact=True, delete=False, min_compaction_lag_ms=HOUR_MS)
    builder.append(b"a=0")
    builder.log.roll(NOW_MS)
    builder.append(b"a=1")
    builder.log.roll(NOW_MS)
    told = Explaining(builder).why(0)
    assert told.earliest_ms == NOW_MS + HOUR_MS
    assert "too young until 2023-11-14T23:13:20Z (in 60 min)" in told.reasons[1]


def test_a_young_tombstone_goes_its_retention_after_the_lag_at_the_earliest(tmp_path: Path) -> None:
    builder = a_log(
        tmp_path, compact=True, delete=False, min_compaction_lag_ms=HOUR_MS, delete_retention_ms=2 * HOUR_MS
    )
    builder.append(b"a")
    builder.log.roll(NOW_MS)
    assert Explaining(builder).why(0).earliest_ms == NOW_MS + 3 * HOUR_MS


def test_a_log_below_its_ratio_says_when_it_is_overdue(tmp_path: Path) -> None:
    """Fact 21."""
    builder = a_log(tmp_path, compact=True, delete=False, max_compaction_lag_ms=HOUR_MS, min_cleanable_dirty_ratio=1.0)
    for value in (b"a=0", b"a=1"):
        builder.append(value)
        builder.log.roll(NOW_MS)
    told = Explaining(builder).why(0)
    assert told.reasons[1] == (
        "the log is not dirty enough: 1.00 of it is dirty, which has to be more than min.cleanable.dirty.ratio = 1; "
        "whatever its ratio, it is cleaned from 2023-11-14T23:13:20Z (in 60 min) on: max.compaction.lag.ms = 3600000"
    )


def test_what_leaves_nothing_to_clean_is_said(tmp_path: Path, log: Explaining) -> None:
    empty = Explaining(a_log(tmp_path / "empty", compact=True, delete=False))
    assert why_nothing_is_cleanable(empty.view().candidate.cleanable, []) == "nothing in it can be cleaned; it is empty"
    clean = log.view(2).candidate.cleanable
    assert why_nothing_is_cleanable(clean, []) == "nothing in it can be cleaned; all of it is clean"
    assert why_nothing_is_cleanable(clean, ["one", "two"]) == "nothing in it can be cleaned; one; two"


def test_fact_96_the_latest_of_its_key_may_go_by_age_or_size_where_the_topic_deletes_too(tmp_path: Path) -> None:
    builder = a_log(tmp_path, compact=True, delete=True, retention_ms=HOUR_MS, retention_bytes=1000)
    builder.append(b"a=0")
    assert Explaining(builder).why(0).reasons == (
        "it is the latest of its key and stays until a newer one comes",
        "its segment is deleted when everything in it is older than retention.ms = 3600000",
        "its segment is deleted when the segments after it fill retention.bytes = 1000",
    )


def test_where_no_record_is_none_is_found(log: Explaining) -> None:
    assert log.find(7) is None
    assert log.find(b"nobody") is None


def test_a_time_that_no_calendar_holds_is_far_away() -> None:
    assert moment_text(2**63 - 1, NOW_MS) == "the end of time"


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [(1, "1 s"), (89_999, "90 s"), (90_000, "2 min"), (3 * HOUR_MS - 1, "3 h"), (36 * HOUR_MS, "2 days")],
)
def test_a_time_to_come_is_also_told_as_a_span(span_ms: int, text: str) -> None:
    assert moment_text(NOW_MS + span_ms, NOW_MS).endswith(f"Z (in {text})")
    assert moment_text(NOW_MS, NOW_MS).endswith("Z")
