"""Trials in interleaved rounds: A B B A …, after each contestant has been warmed up for what is measured.

Before the first round of a trial its own load is run on every contestant, not measured, for the least time that the
trial says or a third of the longest, and then until two windows in a row give figures that differ by less than 3 %: a
JVM answers ten times as many requests after twenty seconds of an API as in the first. Who was never steady is named
with the result. Trials of the same API share that; each is run once more in its own shape, unless it says how to warm
up. Contestants of the same processes share it too, and each is run once. While one contestant is measured the others
are up and idle, unless the trial starts brokers itself. Owns the order and which brokers are up. Must not know what a
trial does.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from bench.results import AGAIN, Figure, Result
from bench.subjects import Subject

Values = tuple[float, ...]
STEADY = 0.03
"""Windows that differ by less are of a contestant that is warm."""
WINDOWS = 20
"""Of the longest warm-up."""
LEAST_WINDOWS = 7
"""Sooner nobody counts as steady: a compiler that runs beside the load may give the same twice by chance."""


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
    least_warm_up_seconds: float | None = None
    """A third of the longest if it is not said."""


def again(trial: Trial) -> Trial:
    """The same once more, to be run at the end: was the machine as it had been?"""
    figures = tuple(replace(figure, variant=f"{figure.variant}, at the end") for figure in trial.figures)
    return replace(trial, name=trial.name + AGAIN, figures=figures)


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
    _unsteady: set[tuple[str, str]] = field(default_factory=set)
    """Of these, the ones that were still changing after the longest warm-up."""

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
            unsteady = tuple(who for who, name in trial.subjects.items() if (name, trial.api) in self._unsteady)
            yield [
                Result(
                    trial.name,
                    figure,
                    {who: [each[place] for each in found] for who, found in values.items()},
                    unsteady,
                )
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
            self._unsteady = {(broker, api) for broker, api in self._unsteady if broker != name}
        for name in sorted(wanted - self._up):
            self.subjects[name].start()
            self._up.add(name)
        for name in trial.subjects.values() if trial.api else ():
            self._warm_up(trial, name)

    def _warm_up(self, trial: Trial, name: str) -> None:
        subject, state = self.subjects[name], (name, trial.api)
        if state not in self._warm:
            shares = self._is_warm_by_another(name, trial.api)
            self._warm.add(state)
            if shares:
                (trial.warm_up or trial.run)(subject, new_topic(trial))
                return
            self.tell(f"warming {name} up for {trial.name}")
            if not _becomes_steady(trial, subject, trial.warm_up or trial.run):
                self._unsteady.add(state)
                self.tell(f"not steady after {trial.warm_up_seconds:.3g} s")
        elif trial.warm_up is None:
            trial.run(subject, new_topic(trial))

    def _is_warm_by_another(self, name: str, api: str) -> bool:
        """One that is the same processes, under another name."""
        processes = set(self.subjects[name].process_ids)
        return any(
            warm_api == api and set(self.subjects[other].process_ids) == processes for other, warm_api in self._warm
        )


def _becomes_steady(trial: Trial, subject: Subject, run: Callable[[Subject, str], Values]) -> bool:
    """Run it for as long as the trial says at most. Without a time one run is enough."""
    longest, window = trial.warm_up_seconds, trial.warm_up_seconds / WINDOWS
    least = LEAST_WINDOWS * window if trial.least_warm_up_seconds is None else trial.least_warm_up_seconds
    began = time.monotonic()
    before = _window(trial, subject, run, window)
    while time.monotonic() - began < longest:
        now = _window(trial, subject, run, window)
        is_alike = abs(now - before) < STEADY * before
        if is_alike and time.monotonic() - began >= least:
            return True
        before = now
    return not longest


def _window(trial: Trial, subject: Subject, run: Callable[[Subject, str], Values], seconds: float) -> float:
    """The mean of the first figure of runs one after the other for so long, of one run at least."""
    ends = time.monotonic() + seconds
    found = [run(subject, new_topic(trial))[0]]
    while time.monotonic() < ends:
        found.append(run(subject, new_topic(trial))[0])
    return fmean(found)


def new_topic(trial: Trial) -> str:
    return f"{trial.name}-{uuid.uuid4().hex[:8]}"
