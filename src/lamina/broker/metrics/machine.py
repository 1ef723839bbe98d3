"""The figures of the process and of the disks, from the operating system.

Everything here may block for a while and belongs on a thread. Must not know the broker.
"""

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Disk:
    free_bytes: int
    capacity_bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """``None`` stands for what this system does not say."""

    cpu_seconds: float | None = None
    max_descriptors: int | None = None
    open_descriptors: int | None = None
    resident_bytes: int | None = None
    disks: dict[str, Disk] = field(default_factory=dict)
    """By log directory; one that cannot be asked is missing."""


def measure_machine(directories: Sequence[str]) -> Machine:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Machine(
        used.ru_utime + used.ru_stime,
        resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        _open_descriptors(),
        _resident_bytes(),
        _disks(directories),
    )


def _open_descriptors() -> int | None:
    try:
        # The list itself takes one.
        return len(os.listdir("/dev/fd")) - 1
    except OSError:
        return None


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return None


def _disks(directories: Sequence[str]) -> dict[str, Disk]:
    disks = {}
    for directory in directories:
        try:
            found = os.statvfs(directory)
        except OSError:
            continue
        disks[directory] = Disk(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
    return disks
