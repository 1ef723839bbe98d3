"""Waits grow from hardly anything to what is configured, and begin again after a success."""

import asyncio

from lamina.broker.backoff import FIRST_SECONDS, Backoff, RetryWait, doubled_ms


def test_waits_double_up_to_the_longest_and_begin_again_after_a_success() -> None:
    backoff = Backoff(0.1)
    assert [backoff.failed() for _ in range(5)] == [FIRST_SECONDS, 0.04, 0.08, 0.1, 0.1]
    backoff.succeeded()
    assert backoff.failed() == FIRST_SECONDS


def test_no_wait_is_longer_than_what_is_configured() -> None:
    backoff = Backoff(0.001)
    assert [backoff.failed() for _ in range(2)] == [0.001, 0.001]
    assert Backoff(0).failed() == 0


def test_a_wait_after_so_many_failures_is_doubled_for_each_but_the_first() -> None:
    assert [doubled_ms(100, failures, 500) for failures in (1, 2, 3, 4)] == [100, 200, 400, 500]
    assert doubled_ms(100, 10**9, 500) == 500


def test_nobody_waits_longer_than_until_it_may_succeed() -> None:
    async def scenario() -> None:
        backoff = RetryWait(3600)
        while backoff.failed() < 3600:
            pass
        waiting = asyncio.create_task(backoff.wait())
        await asyncio.sleep(0)
        backoff.retry_now()
        await waiting

    asyncio.run(scenario())
