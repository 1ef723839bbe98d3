"""How long things took, in bounded memory: counted to two significant figures or better, the largest one exactly.

Must not know what took so long.
"""

_FIGURES = 128
"""Steps of one power of two, so that a step is less than one percent of its value."""


class Latencies:
    def __init__(self) -> None:
        self.count = 0
        self.largest_us = 0
        self._counts: dict[int, int] = {}
        """By the lower edge of the step, in microseconds."""

    def add(self, seconds: float) -> None:
        microseconds = int(seconds * 1e6)
        shift = max(microseconds.bit_length() - _FIGURES.bit_length(), 0)
        edge = microseconds >> shift << shift
        self._counts[edge] = self._counts.get(edge, 0) + 1
        self.count += 1
        if microseconds > self.largest_us:
            self.largest_us = microseconds

    def percentile_ms(self, percent: float) -> float | None:
        """At least so many percent took no longer; ``None`` of nothing."""
        if not self.count:
            return None
        left = self.count * percent / 100
        for edge in sorted(self._counts):
            left -= self._counts[edge]
            if left <= 0:
                return edge / 1000
        return self.largest_us / 1000

    @property
    def largest_ms(self) -> float | None:
        return self.largest_us / 1000 if self.count else None
