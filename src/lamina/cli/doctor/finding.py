"""One thing that was looked at, and how it is.

Must not know what was looked at.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    FINE = "fine"
    WARNING = "warning"
    """A broker runs, but not as well as it could, or not for long."""
    PROBLEM = "problem"
    """It stops a broker from starting or from taking records."""

    @property
    def sign(self) -> str:
        return {State.FINE: "✓", State.WARNING: "!", State.PROBLEM: "✗"}[self]


@dataclass(frozen=True, slots=True)
class Finding:
    """``advice`` says what to do; empty where nothing is to be done."""

    name: str
    state: State
    what: str
    advice: str = ""


def fine(name: str, what: str) -> Finding:
    return Finding(name, State.FINE, what)


def warning(name: str, what: str, advice: str) -> Finding:
    return Finding(name, State.WARNING, what, advice)


def problem(name: str, what: str, advice: str) -> Finding:
    return Finding(name, State.PROBLEM, what, advice)


def in_units(size_bytes: int) -> str:
    """``1610612736`` → ``1.5 GiB``."""
    size, unit = float(size_bytes), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
