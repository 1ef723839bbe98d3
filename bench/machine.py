"""What was measured, where and when: Lamina's revision, processor, memory, disk, kernel, JDK, Python, the date.

Also makes the machine's memory ready for a measurement.
"""

from __future__ import annotations

import mmap
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.peers.kafka import VERSION as KAFKA_VERSION

PROJECT = Path(__file__).parent.parent
TOUCHED_BYTES = 2 << 30


def describe(directory: Path) -> dict[str, str]:
    """Names and values in the order in which they are shown; ``directory`` is where the brokers' data lies."""
    source, file_system = mount_of(directory, Path("/proc/mounts").read_text())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _named("/proc/cpuinfo", "model name") or platform.machine(),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "disk": f"{source}, {_disk_kind(source)}, {file_system}",
        "kernel": f"{platform.system()} {platform.release()}",
        "Lamina": revision_of(PROJECT),
        "Kafka": KAFKA_VERSION,
        "JDK": _java(),
        "Python": platform.python_version(),
        "librdkafka client": f"confluent-kafka {version('confluent-kafka')}",
    }


def revision_of(project: Path) -> str:
    """Git's, with "-dirty" if what is measured or measures was changed since; the version of what is no checkout."""
    if shutil.which("git") is None:
        return version("lamina")
    git = ["git", "-C", str(project)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    if head.returncode != 0:
        return version("lamina")
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "bench"]).returncode
    return head.stdout.strip() + ("-dirty" if changed else "")


def mount_of(directory: Path, mounts: str) -> tuple[str, str]:
    """The device or source under a directory, and its file system."""
    found = ("?", "?")
    longest = -1
    resolved = directory.resolve()
    for line in mounts.splitlines():
        source, point, kind = line.split()[:3]
        if resolved.is_relative_to(point) and len(point) >= longest:
            found, longest = (source, kind), len(point)
    return found


def _disk_kind(source: str) -> str:
    """Read from the device, or from the disk whose part it is."""
    device = Path("/sys/class/block") / Path(source).name
    for place in (device.resolve(), device.resolve().parent):
        try:
            rotates = (place / "queue" / "rotational").read_text().strip() == "1"
        except OSError:
            continue
        # What a virtual disk says of itself is not true of the disk below it.
        return "virtual" if place.name.startswith("vd") else "rotating" if rotates else "solid state"
    return "not a disk"


def _named(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _java() -> str:
    """The runtime's own line, such as "OpenJDK Runtime Environment (build 17.0.15+6)"."""
    if shutil.which("java") is None:
        return "none"
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()
    return next((line for line in shown if "Runtime" in line), "unknown")


def touch_memory(size: int = TOUCHED_BYTES) -> None:
    """Have memory that is free be real: on a virtual machine the host may have taken it back, and then the first use of
    each page costs as much as what is measured there. Real machines know no such cost."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
        pass
