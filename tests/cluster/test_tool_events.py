"""What Kafka's verifiable consumer says becomes reads that are judged, and a group that lost a commit is noticed."""

from typing import Any

from tests.cluster.faults.tool_events import moves_of, sent_back
from tests.history.anomalies import Kind
from tests.history.checker import check
from tests.history.events import History, Send, SendOutcome

PLACE = ("t", 0)
PARTITION = {"topic": "t", "partition": 0}
ASSIGNED: dict[str, Any] = {"name": "partitions_assigned", "partitions": [PARTITION]}


def record(offset: int) -> dict[str, Any]:
    return {"name": "record_data", **PARTITION, "offset": offset, "value": f"7.{offset}"}


def committed(offset: int, *, is_successful: bool = True) -> dict[str, Any]:
    return {"name": "offsets_committed", "offsets": [{**PARTITION, "offset": offset}], "success": is_successful}


def kinds(*events: dict[str, Any]) -> list[Kind]:
    values = {offset: f"7.{offset}".encode() for offset in range(5)}
    sends = [Send("producer", PLACE, value, SendOutcome.ACKED, offset) for offset, value in values.items()]
    history = History(sends, moves_of("consumer", events, lambda _: 0.0), final={PLACE: values})
    return [anomaly.kind for anomaly in check(history)]


def test_what_was_not_committed_may_come_again() -> None:
    events = (ASSIGNED, record(0), committed(1), record(1), record(2), ASSIGNED, *map(record, range(1, 5)))
    assert kinds(*events) == []
    assert sent_back(events) == []


def test_a_record_that_comes_again_without_a_new_assignment_is_an_anomaly() -> None:
    assert kinds(ASSIGNED, record(0), record(1), record(1)) == [Kind.NONMONOTONIC_POLL]


def test_a_record_that_is_skipped_is_one_at_the_start_and_after_a_new_assignment() -> None:
    assert kinds(ASSIGNED, record(1)) == [Kind.POLL_SKIP]
    assert kinds(ASSIGNED, record(0), record(1), ASSIGNED, record(3)) == [Kind.POLL_SKIP]


def test_a_group_that_is_sent_back_behind_its_commit_is_noticed() -> None:
    lost = (ASSIGNED, record(0), record(1), committed(2), ASSIGNED, record(0))
    assert sent_back(lost) == ["t-0: committed 2, given 0"]


def test_a_commit_that_failed_promises_nothing() -> None:
    assert sent_back((ASSIGNED, record(0), committed(1, is_successful=False), ASSIGNED, record(0))) == []
