"""What was measured: figures, the rounds of each contestant, and what may be said of them.

Owns the statistics: a contestant's figure is the median of its rounds, shown with the least and the most of them.
Rounds are interleaved, so that those with the same number ran one after the other: a ratio is that of the medians, its
range that of the ratios round by round. Pure. Must not know what is measured, nor how results are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

Better = Literal["more", "less", "neither"]
NOTICEABLE = 0.02
"""Medians that are closer are even: of five rounds that differ by chance, all agree every sixteenth time."""
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

    def of(self, contestant: str) -> Spread | None:
        values = self.rounds.get(contestant)
        return spread(values) if values else None

    def ratio(self, pair: Pair) -> Spread | None:
        """Ours divided by the rival's."""
        ours, rival = self.rounds.get(pair.ours), self.rounds.get(pair.rival)
        if not ours or not rival or not all(rival):
            return None
        each = [mine / theirs for mine, theirs in zip(ours, rival, strict=True)]
        return Spread(median(ours) / median(rival), min(each), max(each))

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
