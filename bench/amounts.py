"""How much of everything a run does: all of it for figures that are published, or a share for a short look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Amounts:
    share: float
    """Of messages, transactions and commits."""
    load_seconds: float
    """Of one round of small requests."""
    settling_seconds: float
    """Before memory is looked at."""
    warm_up_seconds: float
    """At most, for each API; it ends as soon as two windows are alike (``bench.rounds``)."""

    def count(self, full: int) -> int:
        return max(int(full * self.share), 1)


FULL = Amounts(share=1.0, load_seconds=3.0, settling_seconds=2.0, warm_up_seconds=60.0)
QUICK = Amounts(share=0.1, load_seconds=0.5, settling_seconds=0.5, warm_up_seconds=4.0)
