"""The machine and its Python: version, platform, packages, memory, how many files may be open.

Must not know the broker's files or its port.
"""

import os
import platform
import resource
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version

from lamina.cli.doctor.finding import Finding, fine, in_units, problem, warning

OLDEST_PYTHON = (3, 11)
REQUIRED = ("click", "confluent-kafka", "cramjam", "crc32c", "lz4", "rich")
FEW_FILES, ENOUGH_FILES = 256, 4096
LITTLE_MEMORY_BYTES = 256 * 1024 * 1024

_MEMORY = "/proc/meminfo"
_CONTAINER_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")


def judge_python(version_info: tuple[int, ...], implementation: str, executable: str) -> Finding:
    text = ".".join(map(str, version_info[:3]))
    if version_info[:2] < OLDEST_PYTHON:
        return problem("python", f"{text} at {executable}", "install Python 3.11 or newer")
    if implementation != "CPython":
        return warning("python", f"{implementation} {text}", "only CPython is tested: use that")
    return fine("python", f"{text} at {executable}")


def check_python() -> Finding:
    return judge_python(tuple(sys.version_info[:3]), platform.python_implementation(), sys.executable)


def judge_platform(system: str, description: str) -> Finding:
    if system == "linux":
        return fine("platform", description)
    if system == "darwin":
        return fine("platform", f"{description}; syncs with F_FULLFSYNC")
    if system == "win32":
        return problem("platform", description, "use Linux or macOS, or Linux in WSL or a container")
    return warning("platform", description, "only Linux and macOS are tested: expect surprises")


def check_platform() -> Finding:
    return judge_platform(sys.platform, platform.platform())


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """The installed version of each package, without importing any; ``None`` for one that is missing."""
    found: dict[str, str | None] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def judge_packages(lamina: str, required: Mapping[str, str | None], uvloop: str | None) -> Finding:
    missing = [name for name, found in required.items() if found is None]
    if missing:
        return problem("packages", f"missing: {', '.join(missing)}", "install Lamina again: pip install lamina")
    if uvloop is None:
        return warning(
            "packages", f"lamina {lamina}, without uvloop", "pip install uvloop: the broker is faster with it"
        )
    return fine("packages", f"lamina {lamina}, uvloop {uvloop}")


def check_packages() -> Finding:
    from lamina import __version__

    return judge_packages(__version__, versions_of(REQUIRED), versions_of(["uvloop"])["uvloop"])


def judge_descriptors(hard_limit: int | None) -> Finding:
    """The broker raises its own limit to the hard one; ``None`` is none at all."""
    what = "no limit" if hard_limit is None else f"up to {hard_limit} files and connections"
    advice = "raise it: LimitNOFILE= in a systemd unit, or ulimit -Hn in the shell that starts the broker"
    if hard_limit is not None and hard_limit < FEW_FILES:
        return problem("descriptors", what, advice)
    if hard_limit is not None and hard_limit < ENOUGH_FILES:
        return warning("descriptors", what, advice)
    return fine("descriptors", what)


def check_descriptors() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return judge_descriptors(None if hard == resource.RLIM_INFINITY else hard)


def judge_memory(available_bytes: int | None, total_bytes: int | None) -> Finding:
    if available_bytes is None:
        total = "" if total_bytes is None else f" of {in_units(total_bytes)}"
        return fine("memory", f"how much{total} is available is unknown here")
    what = f"{in_units(available_bytes)} available"
    if total_bytes is not None:
        what += f" of {in_units(total_bytes)}"
    if available_bytes < LITTLE_MEMORY_BYTES:
        return warning("memory", what, "end something else, or give the machine or container more")
    return fine("memory", what)


def check_memory() -> Finding:
    available, total = _read_meminfo()
    limit, used = (_read_number(path) for path in _CONTAINER_MEMORY)
    if limit is not None and used is not None and (available is None or limit - used < available):
        return judge_memory(limit - used, limit)
    if total is None and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return judge_memory(available, total)


def _read_meminfo() -> tuple[int | None, int | None]:
    try:
        with open(_MEMORY) as file:
            found = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return None, None
    available, total = (found.get(name) for name in ("MemAvailable", "MemTotal"))
    return tuple(None if text is None else int(text.split()[0]) * 1024 for text in (available, total))  # type: ignore[return-value]


def _read_number(path: str) -> int | None:
    """``None`` also for ``max``, which is no limit."""
    try:
        with open(path) as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
