"""Partitions whose pass failed are tried again, later and later."""

from lamina.broker.cleaner.troubles import Troubles

KEY = ("t", 0)


def add(troubles: Troubles, now_ms: int, backoff_ms: int = 15_000, is_uncleanable: bool = False) -> int:
    trouble = troubles.add(KEY, "why", is_uncleanable=is_uncleanable, backoff_ms=backoff_ms, now_ms=now_ms)
    return trouble.retry_at_ms - now_ms


def test_the_wait_doubles_from_the_backoff_up_to_an_hour() -> None:
    troubles = Troubles()
    waits = [add(troubles, number) for number in range(12)]
    assert waits[:4] == [15_000, 30_000, 60_000, 120_000]
    assert waits[-1] == 3_600_000
    assert add(Troubles(), 0, backoff_ms=0) == 1000


def test_it_is_not_tried_before_its_time_unless_somebody_asks() -> None:
    troubles = Troubles()
    add(troubles, 0)
    assert troubles.is_waiting(KEY, 14_999)
    assert not troubles.is_waiting(KEY, 15_000)
    troubles.retry_now(KEY, 5)
    assert not troubles.is_waiting(KEY, 5)
    found = troubles.get(KEY)
    assert found is not None
    assert (found.reason, found.attempts, found.since_ms) == ("why", 1, 0)


def test_only_a_log_that_is_the_reason_itself_is_uncleanable() -> None:
    troubles = Troubles()
    add(troubles, 0)
    assert troubles.uncleanable() == []
    add(troubles, 0, is_uncleanable=True)
    assert troubles.uncleanable() == [KEY]
    troubles.clear(KEY)
    assert troubles.uncleanable() == []
    assert add(troubles, 0) == 15_000
