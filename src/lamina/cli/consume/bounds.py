"""Where reading begins and ends, as ``--from`` and ``--to`` say it, and as offsets.

Must not know the network: what a cluster knows of its logs is asked through :class:`Known`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lamina.cli.options.moments import FORMS, parse_moment

_OFFSET = re.compile(r"[0-9]{1,19}")
_LAST = re.compile(r"-[0-9]{1,19}")


class Kind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    BEFORE_END = "before end"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Bound:
    kind: Kind
    number: int = 0
    """An offset, a number of offsets, or milliseconds since 1970."""


EARLIEST = Bound(Kind.EARLIEST)
LATEST = Bound(Kind.LATEST)


class Known(Protocol):
    def at(self, timestamp_ms: int, end: Mapping[int, int]) -> dict[int, int]: ...


def parse_bound(text: str, now_ms: int) -> Bound:
    """Raises ValueError with one sentence."""
    given = text.strip()
    if given in (EARLIEST.kind.value, LATEST.kind.value):
        return Bound(Kind(given))
    if _OFFSET.fullmatch(given):
        return Bound(Kind.OFFSET, int(given))
    if _LAST.fullmatch(given):
        return Bound(Kind.BEFORE_END, -int(given))
    try:
        return Bound(Kind.TIME, parse_moment(given.removeprefix("@"), now_ms))
    except ValueError as error:
        raise ValueError(
            f"{given!r} is neither an offset, earliest, latest, a negative number (that many before the end), nor a "
            f"time; a time is {FORMS}, with @ before milliseconds"
        ) from error


def resolve(bound: Bound, first: Mapping[int, int], end: Mapping[int, int], known: Known) -> dict[int, int]:
    """The offset of a bound in each partition, as the logs are now; one that a number names may lie outside of them."""
    if bound.kind is Kind.EARLIEST:
        return dict(first)
    if bound.kind is Kind.LATEST:
        return dict(end)
    if bound.kind is Kind.OFFSET:
        return dict.fromkeys(end, bound.number)
    if bound.kind is Kind.BEFORE_END:
        return {partition: max(first[partition], offset - bound.number) for partition, offset in end.items()}
    return known.at(bound.number, end)
