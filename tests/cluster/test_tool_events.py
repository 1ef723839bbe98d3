"""What Kafka's verifiable tools say is judged: what was read, a group that lost a commit, what was not acknowledged."""

from typing import Any

from tests.cluster.faults.tool_events import moves_of, sent_back, unacknowledged
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


def acked(*numbers: int) -> list[dict[str, Any]]:
    return [{"name": "producer_send_success", **PARTITION, "value": f"7.{number}"} for number in numbers]


def failed(number: int, exception: str, message: str) -> dict[str, Any]:
    return {"name": "producer_send_error", "value": f"7.{number}", "exception": exception, "message": message}


def stopped(sent: int) -> dict[str, Any]:
    return {"name": "tool_data", "sent": sent}


CLOSED = "Cannot perform operation after producer has been closed"


def test_a_producer_whose_records_are_all_acknowledged_has_no_others() -> None:
    assert unacknowledged([*acked(1, 0, 2), stopped(3)]) == []


def test_the_record_that_the_tool_sends_while_it_closes_its_producer_was_never_sent() -> None:
    refused = failed(2, "class java.lang.IllegalStateException", CLOSED)
    assert unacknowledged([*acked(0, 1), refused, stopped(3)]) == []
    assert unacknowledged([*acked(0, 1), stopped(3)]) == []


def test_any_other_record_without_an_acknowledgement_is_named() -> None:
    assert unacknowledged([*acked(0, 2), stopped(3)]) == ["record 1 has no answer"]
    timed_out = failed(2, "class TimeoutException", "Expiring 1 record(s)")
    assert unacknowledged([*acked(0, 1), timed_out, stopped(3)]) == [
        "record 2 failed: class TimeoutException: Expiring 1 record(s)"
    ]


def test_a_closed_producer_explains_one_record_only() -> None:
    refused = [failed(number, "class java.lang.IllegalStateException", CLOSED) for number in (2, 3)]
    assert unacknowledged([*acked(0, 1), *refused, stopped(4)]) == [
        f"record 3 failed: class java.lang.IllegalStateException: {CLOSED}"
    ]
