"""What was measured: figures, the rounds of each contestant, and what may be said of them.

Owns the statistics: a contestant's figure is the median of its rounds, shown with the least and the most of them.
Rounds are interleaved, so that those with the same number ran one after the other: a ratio is the median of the ratios
round by round, with the least and the most of these. Pure. Must not know what is measured, nor how results are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

Better = Literal["more", "less", "neither"]
NOTICEABLE = 0.02
"""Medians that are closer are even: of five rounds that differ by chance, all agree every sixteenth time."""
DISTURBED = 0.2
"""A load that gives another figure at the end of a run, by this much, was not alone on its machine."""
AGAIN = "-again"
"""Ends the name of a trial that repeats an earlier one."""
Ahead = Literal["ours", "rival", "even", "disagree"]


@dataclass(frozen=True, slots=True)
class Figure:
    group: str
    """Under which heading it is shown."""
    name: str
    unit: str
    better: Better
    variant: str = ""
    """What tells figures of one name apart, such as "16 connections"; tables show them in one line."""


class Spread(NamedTuple):
    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


class Pair(NamedTuple):
    """Two contestants that are compared."""

    rival: str
    ours: str


@dataclass(frozen=True, slots=True)
class Result:
    trial: str
    figure: Figure
    rounds: Mapping[str, Sequence[float]]
    """By contestant, in the order in which they ran. A contestant that does not take part in the trial is absent."""
    unsteady: tuple[str, ...] = ()
    """Contestants that were still changing when their longest warm-up was over."""

    def of(self, contestant: str) -> Spread | None:
        values = self.rounds.get(contestant)
        return spread(values) if values else None

    def ratio(self, pair: Pair) -> Spread | None:
        """Ours divided by the rival's."""
        ours, rival = self.rounds.get(pair.ours), self.rounds.get(pair.rival)
        if not ours or not rival:
            return None
        return spread([_ratio(mine, theirs) for mine, theirs in zip(ours, rival, strict=True)])

    def ahead(self, pair: Pair) -> Ahead | None:
        """Who was better in every single round, and noticeably so. Even is who never differed noticeably, or never in
        the median; else the rounds disagree."""
        ratio = self.ratio(pair)
        if ratio is None or self.figure.better == "neither":
            return None
        if all(abs(value - 1) < NOTICEABLE for value in ratio):
            return "even"
        if ratio.least <= 1 <= ratio.most:
            return "disagree"
        if abs(ratio.median - 1) < NOTICEABLE:
            return "even"
        return "ours" if (ratio.least > 1) == (self.figure.better == "more") else "rival"


def _ratio(ours: float, rival: float) -> float:
    """Nothing is as much as nothing, and anything is more."""
    if rival:
        return ours / rival
    return math.inf if ours else 1.0


def disturbed(results: Sequence[Result]) -> Iterator[tuple[Figure, str, float, float]]:
    """Where a trial that was repeated gave something else: its first figure, who, the first median and the last."""
    first = {result.trial: result for result in reversed(results)}
    for name in (name for name in first if name.endswith(AGAIN)):
        before, last = first[name.removesuffix(AGAIN)], first[name]
        for who in last.rounds:
            old, new = median(before.rounds[who]), median(last.rounds[who])
            if abs(new - old) > DISTURBED * old:
                yield before.figure, who, old, new
