"""The allowed predecessors of every state (internal-topics.md §3.2)."""

from collections.abc import Callable

import pytest

from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import Status, TransactionValue
from lamina.coordinators.transaction_transitions import (
    IllegalTransition,
    aborted_by_fence,
    completed,
    ended,
    ended_with_bump,
    fence_continued,
    initialized,
    with_partitions,
)

EMPTY, ONGOING, DEAD, FENCE = Status.EMPTY, Status.ONGOING, Status.DEAD, Status.PREPARE_EPOCH_FENCE
COMPLETE = {Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}
PREPARE = {Status.PREPARE_COMMIT, Status.PREPARE_ABORT}

CASES: dict[str, tuple[Callable[[TransactionValue], TransactionValue], set[Status]]] = {
    "initialized": (lambda value: initialized(value, Producer(1, 1), 5, 9), {EMPTY, *COMPLETE}),
    "with partitions": (lambda value: with_partitions(value, frozenset(), 0, 9), {EMPTY, ONGOING, *COMPLETE}),
    "committed": (lambda value: ended(value, is_commit=True, now_ms=9), {ONGOING}),
    "aborted": (lambda value: ended(value, is_commit=False, now_ms=9), {ONGOING, FENCE}),
    "committed in version 2": (
        lambda value: ended_with_bump(value, is_commit=True, next_producer_id=-1, now_ms=9),
        {ONGOING},
    ),
    "aborted in version 2": (
        lambda value: ended_with_bump(value, is_commit=False, next_producer_id=-1, now_ms=9),
        {EMPTY, ONGOING, FENCE, *COMPLETE},
    ),
    "fenced": (lambda value: aborted_by_fence(value, 2, 9), {ONGOING, FENCE}),
    "fence continued": (lambda value: fence_continued(value, 9), {ONGOING, FENCE}),
    "completed": (lambda value: completed(value, Producer(1, 1), 9), PREPARE),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("before", Status)
def test_a_state_has_only_its_allowed_predecessors(name: str, before: Status) -> None:
    change, allowed = CASES[name]
    value = TransactionValue(1, 0, 5, before, frozenset(), 8, 7)
    if before in allowed:
        after = change(value)
        assert after.update_timestamp_ms == 9
        assert after.previous_producer_id == 1
    else:
        with pytest.raises(IllegalTransition, match=before.state_name):
            change(value)
