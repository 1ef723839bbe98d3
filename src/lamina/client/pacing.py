"""A steady rate: when the next record is due.

Due times are counted from one another and not from the end of a sleep, so that a rate holds however late a sleeper
wakes. Time that was lost while nothing came is not made up for, except a little. Must not know the clock.
"""

_GRAIN_SECONDS = 0.001
"""Records due closer together than this go out together."""
_CREDIT_SECONDS = 0.1


class Pacer:
    def __init__(self, records_per_second: float, now: float) -> None:
        self._interval = 1 / records_per_second
        self._due = now

    def delay(self, now: float) -> float:
        """Seconds until the next record may go; 0 for now."""
        ahead = self._due - now
        return ahead if ahead > _GRAIN_SECONDS else 0.0

    def sent(self, now: float) -> None:
        self._due = max(self._due, now - _CREDIT_SECONDS) + self._interval
