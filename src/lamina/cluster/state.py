"""What a cluster on this machine consists of, kept in one file: ports, brokers, the settings they are started with.

Pids are not in it: they are believed only while a guard is held (``guarded_process``). The file is replaced as a whole,
after what it holds is on disk, so that a crash leaves the old one or the new one. Must not start anything.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lamina.cluster.errors import ClusterError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class BrokerPlace:
    """``is_stopped``: somebody stopped it, so nobody should wonder that it does not run."""

    port: int
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class ClusterState:
    zookeeper_port: int
    brokers: Mapping[int, BrokerPlace] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every broker, by Kafka's names."""

    def with_broker(self, broker_id: int, place: BrokerPlace) -> "ClusterState":
        return replace(self, brokers=dict(sorted({**self.brokers, broker_id: place}.items())))

    def without_broker(self, broker_id: int) -> "ClusterState":
        return replace(self, brokers={one: place for one, place in self.brokers.items() if one != broker_id})


def read_state(path: Path) -> ClusterState | None:
    """``None`` where no cluster was ever started."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ClusterError(f"{path} cannot be read ({error}): start the cluster on another directory") from error
    if found["format"] > FORMAT:
        raise ClusterError(f"{path} was written by a newer Lamina: upgrade this one")
    return ClusterState(
        found["zookeeper_port"],
        {one["id"]: BrokerPlace(one["port"], one["is_stopped"]) for one in found["brokers"]},
        found["settings"],
    )


def write_state(path: Path, state: ClusterState) -> None:
    written = {
        "format": FORMAT,
        "zookeeper_port": state.zookeeper_port,
        "brokers": [
            {"id": broker_id, "port": place.port, "is_stopped": place.is_stopped}
            for broker_id, place in state.brokers.items()
        ],
        "settings": dict(state.settings),
    }
    new = path.with_suffix(".new")
    with open(new, "w", encoding="utf-8") as file:
        json.dump(written, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
