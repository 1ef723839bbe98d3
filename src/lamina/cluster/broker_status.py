"""How a broker, or the ZooKeeper, of a cluster on this machine is: what its process and the files beside it say.

Must not ask the broker itself.
"""

import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class BrokerState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    """Somebody stopped it."""
    DEAD = "dead"
    """Nobody did: it was killed, or ended by itself."""
    LEFT = "left"
    """It was taken out of the cluster, and stopped by itself because of that."""
    NO_ANSWER = "no answer"
    """It runs, and hangs or is paused: only who asked it knows."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a broker said when clients could connect."""

    pid: int
    admin_address: str | None
    """Where it answers HTTP."""
    version: str
    cluster_id: str
    recovered_partitions: int


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    id: int
    address: str
    """Where clients connect."""
    state: BrokerState
    pid: int | None = None
    started: Started | None = None
    """``None`` until clients can connect."""
    data_directory: Path | None = None
    """Where it keeps what it knows, its tokens too."""


@dataclass(frozen=True, slots=True)
class ZooKeeperStatus:
    port: int
    state: BrokerState
    pid: int | None = None


def read_started(path: Path, pid: int) -> Started | None:
    """``None`` as long as this process has not said so; what an earlier one said does not count."""
    try:
        first, newline, _ = path.read_text(encoding="utf-8").partition("\n")
    except FileNotFoundError:
        return None
    if not newline:
        return None
    facts = json.loads(first)
    if facts["pid"] != pid:
        return None
    admin = next((one["url"].removeprefix("http://") for one in facts["admin"]), None)
    return Started(pid, admin, facts["version"], facts["cluster_id"], facts["recovered_partitions"])


def has_left(log: Path) -> bool:
    """Whether the last that a broker said of its membership is that it was unregistered."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return False
    said = [line for line in lines if _UNREGISTERED in line or _REGISTERED in line]
    return bool(said) and _UNREGISTERED in said[-1]


def last_words(log: Path) -> str:
    """The last sentence of a broker that ended: what it says for a person, else its last line."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    except FileNotFoundError:
        return "its log is empty"
    said = [line.removeprefix(_SENTENCE) for line in lines if line.startswith(_SENTENCE)]
    return said[-1] if said else lines[-1] if lines else "its log is empty"


_SENTENCE = "lamina: "
_UNREGISTERED, _REGISTERED = "this broker was unregistered: it stops", "registered as broker "
_LAST_LINES = 50
_TAIL_BYTES = 64 * 1024
"""A broker that is unregistered stops soon: not much follows."""
