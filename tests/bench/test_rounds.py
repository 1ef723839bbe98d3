"""The order in which brokers are started, warmed up and measured."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from bench.results import Figure
from bench.rounds import Contest, Trial, Values, interleaved
from tests.bench.idle_broker import IdleBroker

FIGURE = Figure("group", "figure", "/s", "more")


class Story:
    """A contest among fakes, and what happened in it."""

    def __init__(self, *brokers: str, kept_up: Sequence[str] = ()) -> None:
        self.events: list[str] = []
        subjects = {name: IdleBroker(name, self.events) for name in brokers}
        self._numbers = count(1)
        self.contest = Contest(subjects, kept_up or brokers, 2, tell=lambda what: None)

    def trial(self, name: str, *brokers: str, **more: Any) -> Trial:
        return Trial(name, (FIGURE,), self.run(name), {broker: broker for broker in brokers}, **more)

    def run(self, name: str) -> Callable[[Any, str], Values]:
        def run(subject: Any, topic: str) -> Values:
            self.events.append(f"{name} {subject.name}")
            return (float(next(self._numbers)),)

        return run


def test_rounds_are_interleaved() -> None:
    order = [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]
    assert list(interleaved(["a", "b"], 3)) == order


def test_a_contest_measures_in_turns() -> None:
    story = Story("a", "b")
    ((result,),) = story.contest.measure([story.trial("x", "a", "b")])
    assert story.events == ["start a", "start b", "x a", "x b", "x b", "x a"]
    assert result.rounds == {"a": [1.0, 4.0], "b": [2.0, 3.0]}


def test_a_trial_may_have_fewer_rounds_than_others() -> None:
    story = Story("a")
    results = list(story.contest.measure([story.trial("x", "a", most_rounds=1), story.trial("y", "a", most_rounds=9)]))
    assert [len(result.rounds["a"]) for (result,) in results] == [1, 2]


def test_every_contestant_runs_the_trial_unmeasured_before_its_first_round() -> None:
    story = Story("a", "b")
    ((result,),) = story.contest.measure([story.trial("x", "a", "b", api="produce")])
    assert story.events[2:] == ["x a", "x b", "x a", "x b", "x b", "x a"]
    assert result.rounds == {"a": [3.0, 6.0], "b": [4.0, 5.0]}


class Clock:
    """Every run takes two seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("bench.rounds.time.monotonic", lambda: self.now)


@pytest.mark.parametrize(
    ("speeds", "runs"),
    [
        ([10, 20, 30, 40, 41, 99], 5),  # The first two windows that are alike end it.
        ([10, 10.2, 99], 2),
        ([*range(10, 100, 10)], 5),  # It is never steady, and 10 s are over.
    ],
)
def test_a_contestant_is_warmed_up_until_two_windows_are_alike(
    monkeypatch: pytest.MonkeyPatch, speeds: Sequence[float], runs: int
) -> None:
    clock, story, found = Clock(monkeypatch), Story("a"), list(speeds)
    told: list[str] = []
    story.contest.tell = told.append

    def warm_up(subject: Any, topic: str) -> Values:
        clock.now += 2
        return (float(found.pop(0)),)

    list(story.contest.measure([story.trial("x", "a", api="produce", warm_up_seconds=10.0, warm_up=warm_up)]))
    assert len(speeds) - len(found) == runs
    assert ("not steady after 10 s" in told) == (speeds[runs - 1] == 50)


def test_nobody_is_steady_before_a_third_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, story, runs = Clock(monkeypatch), Story("a"), []

    def warm_up(subject: Any, topic: str) -> Values:
        clock.now += 3
        runs.append(topic)
        return (10.0,)

    ((result,),) = story.contest.measure([story.trial("x", "a", api="produce", warm_up_seconds=60.0, warm_up=warm_up)])
    assert len(runs) == 7
    assert result.unsteady == ()


def test_a_trial_may_say_how_long_it_is_warmed_up_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, story, runs = Clock(monkeypatch), Story("a"), []

    def warm_up(subject: Any, topic: str) -> Values:
        clock.now += 2
        runs.append(topic)
        return (10.0,)

    warmed = story.trial("x", "a", api="p", warm_up_seconds=24.0, least_warm_up_seconds=20.0, warm_up=warm_up)
    list(story.contest.measure([warmed]))
    assert len(runs) == 10


def test_two_names_of_the_same_processes_are_warmed_up_once_and_each_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, story = Clock(monkeypatch), Story("a", "b", "c")
    for name, processes in {"a": (1, 2), "b": (2, 1), "c": (1, 3)}.items():
        story.contest.subjects[name].processes = processes  # type: ignore[attr-defined]

    def warm_up(subject: Any, topic: str) -> Values:
        clock.now += 4
        story.events.append(f"warm-up {subject.name}")
        return (10.0,)

    list(story.contest.measure([story.trial("x", "a", "b", "c", api="p", warm_up_seconds=10.0, warm_up=warm_up)]))
    warmed = [event for event in story.events if event.startswith("warm-up")]
    assert warmed == ["warm-up a", "warm-up a", "warm-up b", "warm-up c", "warm-up c"]


def test_who_is_never_steady_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, story, speeds = Clock(monkeypatch), Story("a", "b"), count(1)

    def warm_up(subject: Any, topic: str) -> Values:
        clock.now += 3
        return (float(next(speeds)) if subject.name == "b" else 1.0,)

    ((result,),) = story.contest.measure(
        [story.trial("x", "a", "b", api="produce", warm_up_seconds=60.0, warm_up=warm_up)]
    )
    assert result.unsteady == ("b",)


def test_a_window_has_as_many_runs_as_it_has_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, story, found = Clock(monkeypatch), Story("a"), [10.0, 20.0, 14.0, 16.0] * 3

    def warm_up(subject: Any, topic: str) -> Values:
        clock.now += 2
        return (found.pop(0),)

    list(story.contest.measure([story.trial("x", "a", api="produce", warm_up_seconds=60.0, warm_up=warm_up)]))
    assert found == []


def test_what_is_warm_already_is_not_warmed_up_by_other_means_again() -> None:
    story = Story("a")
    warm_up = story.run("warm-up")
    list(story.contest.measure([story.trial(name, "a", api="cleaning", warm_up=warm_up) for name in ("x", "y")]))
    assert story.events == ["start a", "warm-up a", "x a", "x a", "y a", "y a"]


def test_a_broker_that_was_restarted_is_warmed_up_again() -> None:
    story = Story("a")
    warm_up = story.run("warm-up")
    warmed = story.trial("x", "a", api="cleaning", warm_up=warm_up)
    list(story.contest.measure([warmed, story.trial("start", "a", starts_brokers=True), warmed]))
    again = ["stop a", "start a", "start a", "start a", "warm-up a", "x a", "x a"]
    assert story.events == ["start a", "warm-up a", "x a", "x a", *again]


def test_brokers_of_one_trial_run_only_for_it() -> None:
    story = Story("a", "b", "special", kept_up=("a", "b"))
    trials = [story.trial("x", "a", "b"), story.trial("y", "special", "b"), story.trial("z", "a", "b")]
    list(story.contest.measure(trials))
    lives = [event for event in story.events if event.startswith(("start", "stop"))]
    assert lives == ["start a", "start b", "start special", "stop special"]
    assert story.events.index("stop special") < story.events.index("z a")


def test_what_was_measured_before_a_failure_is_there() -> None:
    story = Story("a")

    def fails(subject: Any, topic: str) -> Values:
        raise TimeoutError

    measuring = story.contest.measure([story.trial("x", "a"), Trial("y", (FIGURE,), fails, {"a": "a"})])
    assert [result.trial for result in next(measuring)] == ["x"]
    with pytest.raises(TimeoutError):
        next(measuring)


def test_a_broker_may_stand_for_a_contestant() -> None:
    story = Story("a", "special")
    ((result,),) = story.contest.measure([Trial("x", (FIGURE,), story.run("x"), {"a": "special"})])
    assert list(result.rounds) == ["a"]
    assert "x special" in story.events
