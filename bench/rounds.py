"""Trials in interleaved rounds: A B B A …, after each contestant has been warmed up for what is measured.

Before the first round of a trial its own load is run on every contestant, not measured, until two windows in a row give
figures that differ by less than 3 %, or for as long as the trial says at most: a JVM answers ten times as many requests
after twenty seconds of an API as in the first. Trials of the same API share that; each is run once more in its own
shape, unless it says how to warm up. While one contestant is measured the others are up and idle, unless the trial
starts brokers itself. Owns the order and which brokers are up. Must not know what a trial does.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from bench.results import Figure, Result
from bench.subjects import Subject

Values = tuple[float, ...]
STEADY = 0.03
"""Windows that differ by less are of a contestant that is warm."""
WINDOWS = 20
"""Of the longest warm-up."""


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    figures: tuple[Figure, ...]
    run: Callable[[Subject, str], Values]
    """Takes a broker and a topic name that nobody has used; yields its figures in order."""
    subjects: Mapping[str, str]
    """Which broker stands for each contestant."""
    api: str = ""
    """What is warm after the warm-up; none is needed if empty."""
    warm_up_seconds: float = 0.0
    """At most; if it is 0, one run is enough."""
    warm_up: Callable[[Subject, str], Values] | None = None
    """What is run for that, and only for that; if there is none, the trial itself. Its first figure is looked at."""
    starts_brokers: bool = False
    """It finds its broker stopped, and leaves it so."""
    most_rounds: int | None = None
    """Of a trial that takes long and gives nearly the same each time."""


def interleaved(contestants: Sequence[str], rounds: int) -> Iterator[tuple[int, str]]:
    """The number of each round, and who runs in it; every other round the other way round, so that what grows or
    tires during a trial does so for all alike."""
    for number in range(rounds):
        for contestant in contestants if number % 2 == 0 else reversed(contestants):
            yield number, contestant


@dataclass(slots=True)
class Contest:
    subjects: Mapping[str, Subject]
    kept_up: Sequence[str]
    """Brokers that are left running from one trial to the next; others run only for the trials that name them."""
    rounds: int
    tell: Callable[[str], None]
    _up: set[str] = field(default_factory=set)
    _warm: set[tuple[str, str]] = field(default_factory=set)
    """Brokers, each with an API that it is warm for."""

    def measure(self, trials: Sequence[Trial]) -> Iterator[list[Result]]:
        """The results of each trial as soon as they are there."""
        for trial in trials:
            self._prepare(trial)
            self.tell(f"measuring {trial.name}")
            values: dict[str, list[Values]] = {contestant: [] for contestant in trial.subjects}
            rounds = min(self.rounds, trial.most_rounds or self.rounds)
            for _, contestant in interleaved(list(trial.subjects), rounds):
                subject = self.subjects[trial.subjects[contestant]]
                values[contestant].append(trial.run(subject, new_topic(trial)))
            yield [
                Result(trial.name, figure, {who: [each[place] for each in found] for who, found in values.items()})
                for place, figure in enumerate(trial.figures)
            ]

    def _prepare(self, trial: Trial) -> None:
        names = set(trial.subjects.values())
        wanted = set() if trial.starts_brokers else names
        unwanted = self._up & names if trial.starts_brokers else self._up - names - set(self.kept_up)
        for name in sorted(unwanted):
            self.subjects[name].stop()
            self._up.remove(name)
            self._warm = {(broker, api) for broker, api in self._warm if broker != name}
        for name in sorted(wanted - self._up):
            self.subjects[name].start()
            self._up.add(name)
        for name in trial.subjects.values() if trial.api else ():
            self._warm_up(trial, name)

    def _warm_up(self, trial: Trial, name: str) -> None:
        is_warm = (name, trial.api) in self._warm
        if is_warm and trial.warm_up is not None:
            return
        self.tell(f"warming {name} up for {trial.name}")
        run = trial.warm_up or trial.run
        self._run_until_steady(trial, self.subjects[name], run, 0.0 if is_warm else trial.warm_up_seconds)
        self._warm.add((name, trial.api))

    def _run_until_steady(
        self, trial: Trial, subject: Subject, run: Callable[[Subject, str], Values], at_most_seconds: float
    ) -> None:
        began = time.monotonic()
        before = _window(trial, subject, run, at_most_seconds / WINDOWS)
        while time.monotonic() - began < at_most_seconds:
            now = _window(trial, subject, run, at_most_seconds / WINDOWS)
            if abs(now - before) < STEADY * before:
                return
            before = now
        if at_most_seconds:
            self.tell(f"not steady after {at_most_seconds:.3g} s")


def _window(trial: Trial, subject: Subject, run: Callable[[Subject, str], Values], seconds: float) -> float:
    """The mean of the first figure of runs one after the other for so long, of one run at least."""
    ends = time.monotonic() + seconds
    found = [run(subject, new_topic(trial))[0]]
    while time.monotonic() < ends:
        found.append(run(subject, new_topic(trial))[0])
    return fmean(found)


def new_topic(trial: Trial) -> str:
    return f"{trial.name}-{uuid.uuid4().hex[:8]}"
