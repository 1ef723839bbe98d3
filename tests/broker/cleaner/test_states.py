"""Facts 26 and 27: none, in progress, aborted, paused."""

import pytest

from lamina.broker.cleaner.states import CleaningStates, State

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
