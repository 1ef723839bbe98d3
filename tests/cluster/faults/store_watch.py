"""What ZooKeeper holds of leaders, in-sync sets and the controller, looked at from outside all the time.

Owns that epochs only grow. Goes to ZooKeeper itself, past the proxy. Must not know what tests do.
"""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError

from lamina.store.membership import CONTROLLER, CONTROLLER_EPOCH
from lamina.store.znode_paths import state_path
from tests.cluster.verifiable_producer import Now
from tests.history.events import Partition

NOBODY = -1
_LOOK_SECONDS = 0.03


class State(NamedTuple):
    """Of a partition."""

    leader: int
    in_sync: frozenset[int]
    leader_epoch: int
    controller_epoch: int

    def __str__(self) -> str:
        leader = "nobody" if self.leader == NOBODY else f"broker {self.leader}"
        return f"{leader} leads in epoch {self.leader_epoch}, in sync {sorted(self.in_sync)}"


class StoreWatch:
    """From a thread of its own, as a context."""

    def __init__(self, zookeeper: str, now_ms: Now, tell: Callable[[str], None]) -> None:
        self.states: dict[Partition, State] = {}
        self.changes: list[tuple[float, Partition, State]] = []
        """With the moments when they were seen."""
        self.controller = NOBODY
        self.broken: list[str] = []
        self._client = KazooClient(zookeeper)
        self._now_ms = now_ms
        self._tell = tell
        self._partitions: list[Partition] = []
        self._controller_epoch = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="store watch", daemon=True)

    def __enter__(self) -> "StoreWatch":
        self._client.start(30)
        self._look_at_controller()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._stopping.set()
        # First: what it asked a server that is gone is answered by nobody.
        self._client.stop()
        self._thread.join()
        self._client.close()

    def watch(self, topic: str, partitions: int) -> None:
        self._partitions = self._partitions + [(topic, one) for one in range(partitions)]

    def leader(self, partition: Partition) -> int:
        state = self.states.get(partition)
        return NOBODY if state is None else state.leader

    def in_sync(self, partition: Partition) -> frozenset[int]:
        state = self.states.get(partition)
        return frozenset() if state is None else state.in_sync

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            with suppress(KazooException):
                self._look_at_controller()
                for partition in self._partitions:
                    self._look_at_partition(partition)

    def _look_at_controller(self) -> None:
        try:
            found = int(json.loads(self._client.get(CONTROLLER)[0])["brokerid"])
        except NoNodeError:
            found = NOBODY
        if found != self.controller:
            self.controller = found
            self._tell("nobody is the controller" if found == NOBODY else f"broker {found} is the controller")
        epoch = int(self._client.get(CONTROLLER_EPOCH)[0])
        if epoch < self._controller_epoch:
            self.broken.append(f"the controller epoch went from {self._controller_epoch} to {epoch}")
        self._controller_epoch = epoch

    def _look_at_partition(self, partition: Partition) -> None:
        name = f"{partition[0]}-{partition[1]}"
        try:
            told = json.loads(self._client.get(state_path(*partition))[0])
        except NoNodeError:
            return
        state = State(told["leader"], frozenset(told["isr"]), told["leader_epoch"], told["controller_epoch"])
        before = self.states.get(partition)
        if state == before:
            return
        self.states[partition] = state
        self.changes.append((self._now_ms(), partition, state))
        self._tell(f"{name}: {state}")
        if before is None:
            return
        if state.leader_epoch < before.leader_epoch or state.controller_epoch < before.controller_epoch:
            self.broken.append(f"{name} went from {before} to {state}")
        if state.leader_epoch == before.leader_epoch and state.leader != before.leader:
            self.broken.append(f"{name} has two leaders in one epoch: {before}, then {state}")
