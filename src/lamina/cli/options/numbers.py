"""Numbers on the command line: an error says what is allowed, and help is not cluttered with it.

Must not know what is counted.
"""

import math
import re
from collections.abc import Callable

import click

PARTITION_MAX = 2**31 - 1
REPLICATION_FACTOR_MAX = 2**15 - 1
OFFSET_MAX = 2**63 - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


def whole(smallest: int = 0, largest: int = OFFSET_MAX) -> Callable[[str | int], int]:
    """The type of an option."""

    def number(given: str | int) -> int:
        found = int(given) if _WHOLE.fullmatch(str(given)) else None
        if found is None or not smallest <= found <= largest:
            raise click.BadParameter(f"{given!r} is not a whole number from {smallest} to {largest}")
        return found

    return number


def decimal(smallest: float = 0.0, largest: float = math.inf) -> Callable[[str | float], float]:
    """The type of an option that is above 0."""
    allowed = f"from {smallest:g} to {largest:g}" if smallest else "above 0"

    def number(given: str | float) -> float:
        try:
            found = float(given)
        except ValueError:
            found = math.nan
        if not (0 < found < math.inf and smallest <= found <= largest):
            raise click.BadParameter(f"{given!r} is not a number {allowed}")
        return found

    return number
