"""Where a cluster on this machine keeps what: the names below its directory.

Must not open anything.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

ZOOKEEPER = "zookeeper"
SUPERVISOR = "up"
DEFAULT_DIRECTORY = "lamina-cluster"
"""Below the working directory, unless --data-dir names another."""


def command_for(directory: Path, words: str) -> str:
    """What to type for the cluster of a directory."""
    where = "" if directory == Path(DEFAULT_DIRECTORY).absolute() else f" --data-dir {shlex.quote(str(directory))}"
    return f"lamina cluster {words}{where}"


def broker_name(broker_id: int) -> str:
    return f"broker-{broker_id}"


def member_text(name: str) -> str:
    """As a sentence names it."""
    return "ZooKeeper" if name == ZOOKEEPER else name.replace("-", " ")


def member_argument(name: str) -> str:
    """As `lamina cluster kill` and `restart` want it."""
    return name.removeprefix("broker-")


@dataclass(frozen=True, slots=True)
class Layout:
    """``name`` is ``zookeeper``, ``broker-N`` or ``up``: data lies in a directory of that name.

    What a broker leaves besides its data is apart from it, in ``run/``: a broker whose data somebody removes is still
    found. The ZooKeeper server keeps everything in its own directory.
    """

    directory: Path

    @property
    def state(self) -> Path:
        return self.directory / "cluster.json"

    @property
    def change_lock(self) -> Path:
        """Held by whoever changes the cluster: one at a time."""
        return self.directory / "cluster.lock"

    @property
    def run(self) -> Path:
        return self.directory / "run"

    def data(self, name: str) -> Path:
        return self.directory / name

    def guard(self, name: str) -> Path:
        return self._beside(name) / f"{name}.pid"

    def started(self, name: str) -> Path:
        """What a broker prints when clients can connect."""
        return self.run / f"{name}.started"

    def log(self, name: str) -> Path:
        return self._beside(name) / f"{name}.log"

    def _beside(self, name: str) -> Path:
        return self.data(name) if name == ZOOKEEPER else self.run
