"""What headers alone decide (facts 50-59, 69)."""

from lamina.compaction.retain import NEVER_MS
from lamina.compaction.verdicts import DISCARD_RECORDS, DISCARDABLE, RETAIN_EMPTY, BatchSummary, LastData, Verdicts
from lamina.log.transaction_index import AbortedTransaction
from lamina.records.marker import ControlType

NOW = 1000


def data(last_offset: int, producer: int = 7, *, transactional: bool = True, epoch: int = 0) -> BatchSummary:
    return BatchSummary(last_offset, producer, epoch, transactional, False, None, NEVER_MS)


def marker(
    offset: int,
    control_type: ControlType | None,
    producer: int = 7,
    *,
    horizon: int = NEVER_MS,
    epoch: int = 0,
) -> BatchSummary:
    return BatchSummary(offset, producer, epoch, True, True, control_type, horizon)


def aborted(first: int, last: int, producer: int = 7) -> AbortedTransaction:
    return AbortedTransaction(producer, first, last, last + 1)


def verdicts(*entries: AbortedTransaction, producers: dict[int, LastData] | None = None, end: int = 1000) -> Verdicts:
    return Verdicts(entries, producers or {}, end, NOW)


GONE = DISCARDABLE | DISCARD_RECORDS
ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def test_fact_50_a_producer_is_in_an_aborted_transaction_from_its_first_offset_to_its_marker() -> None:
    pass_ = verdicts(aborted(10, 20))
    assert pass_.judge(data(9)) == 0
    assert pass_.judge(data(10)) == GONE
    assert pass_.judge(data(15, producer=8)) == 0
    assert pass_.judge(data(19)) == GONE
    assert pass_.judge(marker(20, ABORT)) == 0
    assert pass_.judge(data(21)) == 0


def test_fact_50_an_abort_whose_marker_lies_above_the_pass_counts() -> None:
    assert verdicts(aborted(10, 5000), end=100).judge(data(10)) == GONE


def test_fact_50_entries_may_come_in_any_order() -> None:
    pass_ = verdicts(aborted(30, 40), aborted(10, 20))
    seen = [pass_.judge(each) for each in (data(10), marker(20, ABORT), data(25), marker(26, COMMIT), data(30))]
    assert seen == [GONE, 0, 0, 0, GONE]


def test_fact_51_only_a_transactional_batch_can_be_aborted() -> None:
    assert verdicts(aborted(10, 20)).judge(data(10, transactional=False)) == 0


def test_fact_52_a_commit_marker_is_discardable_once_no_batch_of_its_transaction_is_met() -> None:
    pass_ = verdicts()
    assert pass_.judge(marker(5, COMMIT)) == DISCARDABLE
    pass_.judge(data(10))
    assert pass_.judge(marker(11, COMMIT)) == 0
    assert pass_.judge(marker(12, COMMIT)) == DISCARDABLE


def test_fact_52_a_batch_of_another_producer_does_not_keep_a_marker() -> None:
    pass_ = verdicts()
    pass_.judge(data(10, producer=8))
    assert pass_.judge(marker(11, COMMIT)) == DISCARDABLE


def test_fact_53_an_abort_marker_is_kept_with_its_entry_while_a_batch_of_it_is_met() -> None:
    entry = aborted(10, 20)
    pass_ = verdicts(entry)
    pass_.judge(data(12))
    assert pass_.judge(marker(20, ABORT)) == 0
    assert pass_.kept_aborted == [entry]


def test_fact_53_an_abort_marker_without_batches_is_discardable_and_leaves_no_entry() -> None:
    pass_ = verdicts(aborted(10, 20))
    assert pass_.judge(marker(20, ABORT)) == DISCARDABLE
    assert pass_.kept_aborted == []


def test_fact_53_an_abort_marker_that_the_index_does_not_know_is_discardable() -> None:
    pass_ = verdicts()
    pass_.judge(data(10))
    assert pass_.judge(marker(20, ABORT)) == DISCARDABLE
    assert pass_.kept_aborted == []


def test_fact_54_other_control_records_are_never_discardable() -> None:
    for control_type in (ControlType.LEADER_CHANGE, ControlType.UNKNOWN, ControlType.KRAFT_VOTERS):
        assert verdicts().judge(marker(5, control_type, horizon=0)) == 0


def test_fact_54_a_control_batch_without_records_is_discardable() -> None:
    assert verdicts().judge(marker(5, None)) == DISCARDABLE


def test_fact_55_a_discardable_marker_is_dropped_only_at_its_horizon() -> None:
    assert verdicts().judge(marker(5, COMMIT, horizon=NOW + 1)) == DISCARDABLE
    assert verdicts().judge(marker(5, COMMIT, horizon=NOW)) == GONE


def test_fact_55_a_marker_with_data_is_not_dropped_at_its_horizon() -> None:
    pass_ = verdicts()
    pass_.judge(data(4))
    assert pass_.judge(marker(5, COMMIT, horizon=0)) == 0


def test_fact_56_the_last_batch_of_an_active_producer_is_retained_though_empty() -> None:
    pass_ = verdicts(producers={7: LastData(0, 10)})
    assert pass_.judge(data(9, transactional=False)) == 0
    assert pass_.judge(data(10, transactional=False)) == RETAIN_EMPTY
    assert pass_.judge(data(10, producer=8, transactional=False)) == 0
    assert 10 in pass_.retained_offsets


def test_fact_56_a_marker_at_the_last_data_offset_is_retained_though_empty_too() -> None:
    pass_ = verdicts(producers={7: LastData(0, 10)})
    assert pass_.judge(marker(10, COMMIT)) == DISCARDABLE | RETAIN_EMPTY
    assert pass_.judge(marker(11, COMMIT)) == DISCARDABLE


def test_fact_56_and_59_the_marker_of_the_current_epoch_is_retained_though_empty_while_it_has_no_data() -> None:
    pass_ = verdicts(producers={7: LastData(3, None)})
    assert pass_.judge(marker(5, COMMIT, epoch=2)) == DISCARDABLE
    assert pass_.judge(marker(6, COMMIT, epoch=3)) == DISCARDABLE | RETAIN_EMPTY
    assert pass_.judge(data(7, epoch=3)) == 0


def test_fact_56_the_batch_that_reaches_the_end_of_the_pass_is_retained_though_empty() -> None:
    pass_ = verdicts(end=100)
    assert pass_.judge(data(98, producer=-1, transactional=False)) == 0
    assert pass_.judge(data(99, producer=-1, transactional=False)) == RETAIN_EMPTY
    assert 99 in pass_.retained_offsets


def test_fact_57_a_producer_that_is_not_active_protects_nothing() -> None:
    assert verdicts(producers={8: LastData(0, 10)}).judge(data(10, transactional=False)) == 0


def test_fact_56_no_producer_is_not_a_producer() -> None:
    assert verdicts(producers={-1: LastData(-1, 10)}).judge(data(10, producer=-1, transactional=False)) == 0


def test_fact_69_a_marker_lives_three_passes() -> None:
    first = verdicts(aborted(10, 20))
    assert [first.judge(data(12)), first.judge(marker(20, ABORT))] == [GONE, 0]
    second = verdicts(aborted(10, 20))
    assert second.judge(marker(20, ABORT)) == DISCARDABLE  # gets its horizon
    third = verdicts()
    assert third.judge(marker(20, ABORT, horizon=NOW)) == GONE
