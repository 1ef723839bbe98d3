"""Waits grow from hardly anything to what is configured, and begin again after a success."""

from lamina.broker.replication.backoff import FIRST_SECONDS, Backoff


def test_waits_double_up_to_the_longest_and_begin_again_after_a_success() -> None:
    backoff = Backoff(0.1)
    assert [backoff.failed() for _ in range(5)] == [FIRST_SECONDS, 0.04, 0.08, 0.1, 0.1]
    backoff.succeeded()
    assert backoff.failed() == FIRST_SECONDS


def test_no_wait_is_longer_than_what_is_configured() -> None:
    backoff = Backoff(0.001)
    assert [backoff.failed() for _ in range(2)] == [0.001, 0.001]
    assert Backoff(0).failed() == 0
