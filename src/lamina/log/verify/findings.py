"""What verifying finds, and how much it looked at.

Owns the shape of a finding and the bound on how many are kept for one file. Must not know how anything is
checked, nor how it is shown.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

MAX_FINDINGS_PER_FILE = 20


class Severity(StrEnum):
    ERROR = "error"
    """Something is wrong that nothing will put right by itself."""
    WARNING = "warning"
    """Something that the next start repairs, or that may have a good reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    path: str
    what: str
    advice: str
    position: int | None = None
    """The byte in the file."""
    offset: int | None = None
    """The record in the log."""


@dataclass(slots=True)
class Findings:
    """Every finding in the order of discovery; past the bound they are only counted."""

    kept: list[Finding] = field(default_factory=list)
    errors: int = 0
    warnings: int = 0
    not_kept: Counter[str] = field(default_factory=Counter)
    """How many more there are, by file."""
    _by_path: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        severity: Severity,
        path: str,
        what: str,
        advice: str,
        *,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        if severity is Severity.ERROR:
            self.errors += 1
        else:
            self.warnings += 1
        self._by_path[path] += 1
        if self._by_path[path] > MAX_FINDINGS_PER_FILE:
            self.not_kept[path] += 1
        else:
            self.kept.append(Finding(severity, path, what, advice, position, offset))


@dataclass(slots=True)
class Counts:
    """How much was verified."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    """Of log files."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the log directory says of one partition before its files are read."""

    is_clean: bool
    """Whether the last stop was clean, so that nothing may be unfinished."""
    is_running: bool
    """Whether a broker is using it: what is unfinished is then no leftover of a crash."""
    recovery_point: int | None = None
    """Everything below it was flushed; ``None`` when nothing says so."""
    log_start_offset: int | None = None
    """``None`` when nothing says more than the first segment's name."""
    cleaned_offset: int | None = None
    """Up to where cleaning may have left gaps; ``None`` when that cannot be told."""
