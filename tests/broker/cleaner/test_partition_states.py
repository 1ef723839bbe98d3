"""Facts 26 and 27: none, in progress, aborted, paused. A partition whose pass failed is tried again later."""

import pytest

from lamina.broker.cleaner.partition_states import CleaningStates, FailedPasses, State

KEY = ("t", 0)


def test_a_pass_begins_only_from_none() -> None:
    states = CleaningStates()
    states.begin(KEY)
    assert states.state(KEY) is State.IN_PROGRESS
    with pytest.raises(ValueError, match="is in progress and cannot be cleaned"):
        states.begin(KEY)
    assert states.finish(KEY)
    assert states.state(KEY) is State.NONE
    states.pause(KEY)
    with pytest.raises(ValueError, match="is paused"):
        states.begin(KEY)


def test_an_aborted_pass_does_not_count_and_leaves_none() -> None:
    states = CleaningStates()
    states.begin(KEY)
    states.abort(KEY)
    assert states.state(KEY) is State.ABORTED
    assert not states.finish(KEY)
    assert states.may_begin(KEY)


def test_pausing_aborts_and_holds_until_it_is_taken_back_as_often() -> None:
    states = CleaningStates()
    states.begin(KEY)
    states.pause(KEY)
    states.pause(KEY)
    assert states.state(KEY) is State.ABORTED
    assert not states.finish(KEY)
    assert states.state(KEY) is State.PAUSED
    states.resume(KEY)
    assert not states.may_begin(KEY)
    states.resume(KEY)
    assert states.may_begin(KEY)


def test_a_pause_that_ends_before_the_job_answers_does_not_bring_the_pass_back() -> None:
    states = CleaningStates()
    states.begin(KEY)
    states.pause(KEY)
    states.resume(KEY)
    assert states.state(KEY) is State.ABORTED
    assert not states.finish(KEY)
    assert states.may_begin(KEY)


def test_what_was_not_begun_cannot_end_and_what_was_not_paused_cannot_resume() -> None:
    states = CleaningStates()
    with pytest.raises(ValueError, match="is none, no pass can end"):
        states.finish(KEY)
    with pytest.raises(ValueError, match="is not paused"):
        states.resume(KEY)
    states.begin(KEY)
    with pytest.raises(ValueError, match="is not paused"):
        states.resume(KEY)


def test_a_partition_that_is_gone_leaves_nothing_to_one_of_its_name() -> None:
    states = CleaningStates()
    states.begin(KEY)
    states.pause(KEY)
    states.forget(KEY)
    assert states.may_begin(KEY)


# After a failure


def add(failed_passes: FailedPasses, now_ms: int, backoff_ms: int = 15_000, is_uncleanable: bool = False) -> int:
    failed = failed_passes.add(KEY, "why", is_uncleanable=is_uncleanable, backoff_ms=backoff_ms, now_ms=now_ms)
    return failed.retry_at_ms - now_ms


def test_the_wait_doubles_from_the_backoff_up_to_an_hour() -> None:
    failed_passes = FailedPasses()
    waits = [add(failed_passes, number) for number in range(12)]
    assert waits[:4] == [15_000, 30_000, 60_000, 120_000]
    assert waits[-1] == 3_600_000
    assert add(FailedPasses(), 0, backoff_ms=0) == 1000


def test_it_is_not_tried_before_its_time_unless_somebody_asks() -> None:
    failed_passes = FailedPasses()
    add(failed_passes, 0)
    assert failed_passes.is_waiting(KEY, 14_999)
    assert not failed_passes.is_waiting(KEY, 15_000)
    failed_passes.retry_now(KEY, 5)
    assert not failed_passes.is_waiting(KEY, 5)
    found = failed_passes.get(KEY)
    assert found is not None
    assert (found.reason, found.attempts, found.since_ms) == ("why", 1, 0)


def test_only_a_log_that_is_the_reason_itself_is_uncleanable() -> None:
    failed_passes = FailedPasses()
    add(failed_passes, 0)
    assert failed_passes.uncleanable() == []
    add(failed_passes, 0, is_uncleanable=True)
    assert failed_passes.uncleanable() == [KEY]
    failed_passes.clear(KEY)
    assert failed_passes.uncleanable() == []
    assert add(failed_passes, 0) == 15_000
