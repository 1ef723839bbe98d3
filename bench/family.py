"""A process and all below it, on Linux. Must not know what they do."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

PROC = Path("/proc")
_LOOK_SECONDS = 0.05


def parents() -> dict[int, int]:
    """Of every process on this machine its parent; one that has ended and is not yet waited for is none."""
    found = {}
    for path in PROC.iterdir():
        if path.name.isdigit():
            try:
                state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                found[int(path.name)] = int(parent)
    return found


def family_of(process_id: int, parent_of: Mapping[int, int]) -> list[int]:
    """A process and all below it."""
    family = [process_id]
    for member in family:
        family += [child for child, parent in parent_of.items() if parent == member]
    return family


def families_of(process_ids: Iterable[int]) -> list[int]:
    """These processes, and all that is below them now."""
    parent_of = parents()
    return [member for process_id in process_ids for member in family_of(process_id, parent_of)]


def await_end(process_ids: Iterable[int], seconds: float) -> None:
    """Wait until all of them have ended; raises :class:`TimeoutError`."""
    deadline = time.monotonic() + seconds
    while remaining := parents().keys() & set(process_ids):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(remaining)} did not end within {seconds:g} s")
        time.sleep(_LOOK_SECONDS)
