"""A node that is a member of a cluster: registered in the ensemble, reached by the other brokers.

Owns its session and who proves it, and what it remembers of the cluster. Must not know the other nodes.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random

from lamina.broker.metadata.member import Member
from lamina.broker.parts import Parts
from lamina.image.features import why_unsupported
from lamina.log.identity import new_id
from lamina.settings.listeners import OWN_BROKER_LISTENER
from lamina.settings.listeners import Listener as Endpoint
from lamina.storage import MemberStorage
from lamina.store.cluster_identity import cluster_id
from lamina.store.interface import StoreError
from lamina.store.member_file import MemberRecord
from lamina.store.session import PROBES_PER_TIMEOUT
from lamina.store.znodes import ZnodeMetadata
from tests.simulation.ensemble import TIMEOUT_MS, Ensemble
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import Network
from tests.simulation.node import CLIENTS, RESTART_SECONDS, Node
from tests.simulation.story import Story

_BROKER_PORT = 9093
_DRAIN_SECONDS = 3.0


class MemberNode(Node):
    def __init__(
        self,
        loop: VirtualLoop,
        rng: Random,
        network: Network,
        story: Story,
        node_id: int,
        settings: Mapping[str, str],
        on_fatal: Callable[[str], None],
        ensemble: Ensemble,
        disk_count: int = 1,
    ) -> None:
        member = {"zookeeper.connect": "zookeeper:2181", **settings}
        super().__init__(loop, rng, network, story, node_id, member, self._could_not_go_on, disk_count)
        self._on_could_not_go_on = on_fatal
        self._ensemble = ensemble
        self._remembered: MemberRecord | None = None
        """Is written and synced in one step, so a power cut leaves it."""

    @property
    def is_controller(self) -> bool:
        member = None if self.parts is None else self.parts.member_parts
        return member is not None and member.member.is_controller

    def unregister(self, broker_id: int) -> "asyncio.Task[None]":
        """Have this broker, which is the controller, take one out of the cluster."""
        assert self.parts is not None
        self._tell(f"takes node-{broker_id} out of the cluster")
        return self._loop.spawn(self.process, self.parts.metadata.unregister_broker(broker_id))

    def _could_not_go_on(self, reason: str) -> None:
        """One whose version is refused ends, and is started again and again until it has another one."""
        finalized = ZnodeMetadata(self._ensemble.zookeeper.connect()).features()
        if why_unsupported(finalized, self.running) is None:
            self._on_could_not_go_on(reason)
            return
        self._tell(f"is refused: {reason}")
        self._loop.call_later(0.0, self._end_refused, self.process, context=self._loop.world.context)

    def _end_refused(self, process: Process) -> None:
        is_stopping = not self.is_serving and self._timers is not None
        if self._process is process and not is_stopping:
            self.kill()
        self._loop.call_later(RESTART_SECONDS, self.start, context=self._loop.world.context)

    def wipe(self) -> None:
        """Give the machine empty disks. It must not be up."""
        assert not self.is_up
        self._tell("has an empty disk")
        self.disks.wipe()
        self._remembered = None

    def break_disk(self, number: int) -> None:
        self._tell(f"its disk {number} fails")
        self.disks.break_one(number)

    def replace_disk(self, number: int, *, is_empty: bool) -> None:
        """It must not be up."""
        assert not self.is_up
        self._tell(f"its disk {number} is {'replaced by an empty one' if is_empty else 'as it was'}")
        self.disks.repair(number)
        if is_empty:
            self.disks.wipe_one(number)

    def _open_storage(self) -> MemberStorage:
        store = self._ensemble.connect(self.machine, self.process)
        known = None if self._remembered is None else self._remembered.cluster_id
        stored = cluster_id(store, new_id(), known)
        self._remembered = self._remembered or MemberRecord(stored)
        directories = self.disks.open(self.id, stored)
        return MemberStorage("/data", self.id, directories, store, self._remembered, self._remember)

    def _remember(self, record: MemberRecord) -> None:
        self._remembered = record

    def _for_brokers(self) -> list[Endpoint]:
        return [Endpoint(OWN_BROKER_LISTENER, CLIENTS, self.machine, _BROKER_PORT)]

    def _begin(self, parts: Parts) -> None:
        self._loop.create_task(self._prove_session(parts))

    async def _prove_session(self, parts: Parts) -> None:
        """As `SessionProber`, in virtual time: what it asks counts from when it asked."""
        assert parts.member_parts is not None
        session = parts.member_parts.lease.session
        while True:
            await asyncio.sleep(TIMEOUT_MS / PROBES_PER_TIMEOUT / 1000 + self._rng.uniform(0.0, 0.02))
            with suppress(StoreError):
                session.probe()

    async def _drain(self, parts: Parts) -> None:
        assert isinstance(parts.participant, Member)
        await parts.participant.drain(_DRAIN_SECONDS)
