"""What may be wrong with a history: the kinds, as Jepsen names them, and one instance with what was seen."""

from enum import StrEnum
from typing import NamedTuple

_SHOWN_OF_A_KIND = 5
_SHOWN_BYTES = 40


class Kind(StrEnum):
    LOST = "lost"
    """Acknowledged or read, and not there at last, while something after it was read."""
    UNSEEN = "unseen"
    """Acknowledged, and nobody read it or anything after it."""
    DUPLICATE = "duplicate"
    """One value at two offsets."""
    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    """One offset with two values."""
    REORDERED = "reordered"
    """Values of one producer lie in another order than it sent them in."""
    NONMONOTONIC_SEND = "nonmonotonic-send"
    """A later send was told a lower offset."""
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    """A reader was given an offset that is not above the one before."""
    POLL_SKIP = "poll-skip"
    """A reader went past a value without being given it."""
    ABORTED_READ = "aborted-read"
    """G1a: a reader of committed records saw what was aborted, or was said not to be written."""
    UNKNOWN_VALUE = "unknown-value"
    """Somebody read what nobody sent."""
    TORN = "torn-transaction"
    """Some of what a transaction wrote is there at last, and some is not."""
    CYCLE = "cycle"
    """G1c: each of these transactions read what the next one wrote."""
    END_WENT_BACK = "end-went-back"
    """The end of a partition was told lower than before."""


class Anomaly(NamedTuple):
    kind: Kind
    what: str
    """A sentence with value, partition, offset, and who saw it when."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def shown(value: bytes) -> str:
    """In a sentence: what was damaged may be long."""
    return repr(value if len(value) <= _SHOWN_BYTES else value[:_SHOWN_BYTES] + b"...")


def summary(anomalies: list[Anomaly]) -> str:
    """The first few of each kind, and how many there are."""
    lines: list[str] = []
    for kind in Kind:
        found = [one for one in anomalies if one.kind is kind]
        if found:
            lines += [f"{kind} ({len(found)})", *(f"  {one.what}" for one in found[:_SHOWN_OF_A_KIND])]
    return "\n".join(lines)
