"""The clusters of a world, with their clients: a node by itself, or several members.

Owns what is in a cluster and the order of its life: topics are made, clients work while faults happen, all heals,
clients finish, and all that is left is read and judged. Must not know how anything is done.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random
from types import MappingProxyType
from typing import Any, TypeVar

from lamina.image.features import LAMINA_VERSION
from lamina.image.image import ConfigResource, ResourceType
from lamina.store.znodes import ZnodeMetadata
from lamina.wire.fetch_request import READ_COMMITTED, READ_UNCOMMITTED
from tests.simulation.clients import Admin, IdempotentProducer, PlainProducer, Reader, SimulatedClient, Surroundings
from tests.simulation.clocks import NodeClocks
from tests.simulation.configuring_client import DOUBTFUL, Configs, Configurer, DoubtfulProducer
from tests.simulation.electing_client import Elector
from tests.simulation.ensemble import Ensemble
from tests.simulation.faults import Faults
from tests.simulation.finalizing_client import Finalizer
from tests.simulation.judge import Judge, TopicPartition
from tests.simulation.leases import Leases
from tests.simulation.lone_node import LoneNode
from tests.simulation.loop import VirtualLoop
from tests.simulation.member_faults import MemberFaults
from tests.simulation.member_node import MemberNode
from tests.simulation.member_watch import MemberWatch
from tests.simulation.moving_client import Mover
from tests.simulation.network import Network, SimulatedConnector
from tests.simulation.node import Node
from tests.simulation.reassigning_client import Reassigner
from tests.simulation.story import Story
from tests.simulation.surveying_client import Surveyor
from tests.simulation.transactional_clients import Copier, TransactionalProducer
from tests.simulation.trimming_client import Trimmer
from tests.simulation.upgrades import NEWEST_LEVEL, Upgrades
from tests.simulation.watch import Watch

C = TypeVar("C", bound=SimulatedClient)

_HEALING_S = 60.0
_COMMITTED_S = 4.0
"""More than a follower may be behind before it leaves the in-sync set, and what that takes."""
TOPICS = {"plain": 2, "source": 1, "copies": 1}
_PARTITIONS: list[TopicPartition] = [(topic, index) for topic, count in TOPICS.items() for index in range(count)]


@dataclass(frozen=True, slots=True)
class Universe:
    """What all clusters of a world share."""

    loop: VirtualLoop
    rng: Random
    network: Network
    story: Story
    fail: Callable[[str], None]
    """Told why this world is not as it should be."""

    def broker_ended(self, reason: str) -> None:
        self.fail(f"a broker could not go on: {reason}")


class SimulatedCluster:
    def __init__(self, universe: Universe, number: int, nodes: Sequence[Node], judge: Judge) -> None:
        self._loop = universe.loop
        self._rng = universe.rng
        self.network = universe.network
        self._story = universe.story
        self._number = number
        self._nodes = nodes
        self.judge = judge
        bootstrap = [node.address for node in nodes]
        self.around = Surroundings(self._story, self.judge, self._rng, NodeClocks(self._loop).clocks, bootstrap)

    # What kinds of clusters differ in

    def look(self) -> None:
        """After every step: does all hold that must?"""
        raise NotImplementedError

    def _faults(self, machines: list[str]) -> Coroutine[Any, Any, None]:
        raise NotImplementedError

    async def become_whole(self) -> None:
        """Wait until all brokers are there, and whatever was copied between them is copied again."""

    def _new_clients(self) -> list[SimulatedClient]:
        raise NotImplementedError

    def _new_movers(self) -> list[SimulatedClient]:
        """Where there is anything to move to."""
        ids, paths = [node.id for node in self._nodes], self._nodes[0].disks.paths
        return [self._new(Mover, "mover", ids, paths, _PARTITIONS)] if len(paths) > 1 else []

    # Its life

    def _new(self, kind: Callable[..., C], name: str, *facts: Any, **named: Any) -> C:
        name = f"{name}-{self._number}"
        return kind(name, self.around, SimulatedConnector(self.network, name, name), *facts, **named)

    async def live(self) -> None:
        for node in self._nodes:
            node.start()
        await self.become_whole()
        admin = self._new(Admin, "admin")
        await self._as(admin, admin.create_topics(TOPICS))
        clients, copier = self._new_clients(), self._new(Copier, "copier", ("source", 0), ("copies", 0))
        running = {client: self._as(client, client.run()) for client in (*clients, copier)}
        await self._faults([client.name for client in running])
        self._story.tell("world", f"everything around cluster {self._number} has healed")
        try:
            async with asyncio.timeout(_HEALING_S):
                await self.become_whole()
                for client in clients:
                    client.is_finishing = True
                await asyncio.gather(*(running[client] for client in clients))
                copier.is_finishing = True
                await running[copier]
                await self._as(admin, self._judge_all(admin))
        except TimeoutError:
            waiting = [client.name for client, task in running.items() if not task.done() or task.cancelled()]
            what = f"{waiting} have not finished" if waiting else "transactions have not ended"
            raise self.judge.violated(f"{what} {_HEALING_S:g} s after everything healed") from None

    def _as(self, client: SimulatedClient, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """In a process of the client's own."""
        return self._loop.spawn(self._loop.new_process(client.name), work)

    async def _judge_all(self, admin: Admin) -> None:
        committed = {}
        for key in _PARTITIONS:
            records = await admin.read_all(key, READ_UNCOMMITTED)
            self.judge.check_log(key, {record.offset: record.value for record in records})
            seen = await admin.read_all(key, READ_COMMITTED)
            committed[key] = [record.value for record in seen if record.is_visible]
        self.judge.check_transactions(committed)
        if committed["copies", 0] != committed["source", 0]:
            raise self.judge.violated(f"{committed['source', 0]} was copied as {committed['copies', 0]}")
        self._story.tell(admin.name, f"all is well: {sum(map(len, committed.values()))} records")


_TWO_DISKS = 0.35
"""In how many worlds brokers have two log directories, between which partitions move."""


def drawn_disks(rng: Random) -> tuple[int, dict[str, str]]:
    """How many disks the brokers of a world have, and how moves between them are held back.

    Drawn beside everything else: a world with one disk is as it would be without this.
    """
    beside = Random()
    beside.setstate(rng.getstate())
    if beside.random() >= _TWO_DISKS:
        return 1, {}
    settings = {"replica.fetch.max.bytes": beside.choice(("2000", "1048576"))}
    if beside.random() < 0.8:
        settings["replica.alter.log.dirs.io.max.bytes.per.second"] = beside.choice(("700", "2000", "10000"))
    return 2, settings


class SingleNode(SimulatedCluster):
    """A node that is the whole cluster."""

    def __init__(self, universe: Universe, number: int) -> None:
        self._disk_count, settings = drawn_disks(universe.rng)
        # By default a kill loses nothing, and a power cut may; flush.messages=1 also covers the machine.
        self._cuts_power = universe.rng.random() < 0.6
        settings |= {"log.flush.interval.messages": "1"} if self._cuts_power else {}
        node = LoneNode(
            universe.loop,
            universe.rng,
            universe.network,
            universe.story,
            number,
            settings,
            universe.broker_ended,
            self._disk_count,
        )
        super().__init__(universe, number, [node], Judge(universe.fail))
        self._watch = Watch(self.judge, [node])

    def look(self) -> None:
        self._watch.look()

    def _new_clients(self) -> list[SimulatedClient]:
        acks = self._rng.choice((1, -1))
        return [
            *self._new_movers(),
            self._new(PlainProducer, "plain", ("plain", 0), acks),
            self._new(IdempotentProducer, "idem", ("plain", 1)),
            self._new(TransactionalProducer, "txn", [("plain", 0), ("source", 0)]),
            self._new(Reader, "reader", ("plain", 0), READ_UNCOMMITTED),
            self._new(Reader, "careful", ("copies", 0), READ_COMMITTED),
        ]

    async def _faults(self, machines: list[str]) -> None:
        faults = Faults(
            self._rng, self.network, self._story, self.judge, self._nodes, machines, cuts_power=self._cuts_power
        )
        await faults.happen(self._rng.randint(2, 5))


_FACTOR = 3
_REASSIGNING = 0.5
"""In how many worlds partitions are reassigned."""
_CONFIGURING = 0.4
"""In how many worlds topics get other settings."""
_UPGRADING = 0.3
"""In how many worlds brokers begin with an older version."""
_REPLICATED = {
    "default.replication.factor": str(_FACTOR),
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "800",
    "replica.socket.timeout.ms": "800",
    "replica.fetch.backoff.ms": "120",
    "log.retention.check.interval.ms": "900",
    # Longer than any broker is away.
    "lamina.unclean.recovery.wait.ms": "10000",
}


class Members(SimulatedCluster):
    """Three brokers, sometimes more, with three or four replicas of everything, two of which are enough."""

    def __init__(
        self, universe: Universe, count: int | None = None, given: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        loop, rng, story = universe.loop, universe.rng, universe.story
        disk_count, throttle = drawn_disks(rng)
        self.ensemble = Ensemble(loop, rng, story)
        count = count or rng.choice((3, 3, 3, 3, 4, 5))
        # By default a power cut of all may lose what all had in memory only; flush.messages=1 also covers that.
        self._cuts_all_power = rng.random() < 0.15
        settings = {**_REPLICATED, **({"log.flush.interval.messages": "1"} if self._cuts_all_power else {})}
        if count > _FACTOR and rng.random() < 0.5:
            settings["default.replication.factor"] = str(_FACTOR + 1)
        self._brings_leaders_back = rng.random() < 0.5
        settings["leader.imbalance.check.interval.seconds"] = "1" if self._brings_leaders_back else "300"
        settings |= {**throttle, **given}
        self.members = [
            MemberNode(
                loop,
                rng,
                universe.network,
                story,
                node_id,
                settings,
                universe.broker_ended,
                self.ensemble,
                disk_count,
            )
            for node_id in range(1, count + 1)
        ]
        super().__init__(universe, 1, self.members, Judge(universe.fail, has_one_leader=False))
        self.watch = MemberWatch(self.judge, self.members, self.ensemble)
        self._leases = Leases(self.judge, self.members, self.ensemble, universe.loop)
        self._reassigners: list[Reassigner] = []
        self._configurers: list[Configurer] = []
        self._upgrades: Upgrades | None = None
        if rng.random() < _UPGRADING:
            self._upgrades = Upgrades(rng, self.members, self.judge)

    def look(self) -> None:
        self.watch.look()
        self._leases.look()
        if self._upgrades is not None:
            self._upgrades.look()

    def _new_clients(self) -> list[SimulatedClient]:
        trimmers = [self._new(Trimmer, "trimmer", ("plain", 1))] if self._rng.random() < 0.3 else []
        electors = [self._new(Elector, "elector", ("plain", 0))] if self._rng.random() < 0.3 else []
        if self._rng.random() < _REASSIGNING:
            ids = [node.id for node in self.members]
            self._reassigners = [self._new(Reassigner, "reassigner", ids, self.watch.assigned)]
        doubted: list[SimulatedClient] = []
        if self._rng.random() < _CONFIGURING:
            self.watch.doubt(DOUBTFUL)
            self._configurers = [self._new(Configurer, "configurer", sorted(TOPICS))]
            doubted = [self._new(DoubtfulProducer, "doubted", (DOUBTFUL, 0), -1, is_promised=False)]
        finalizers = []
        if self._upgrades is not None:
            finalizers = [self._new(Finalizer, "finalizer", LAMINA_VERSION, NEWEST_LEVEL)]
        return [
            *self._configurers,
            *doubted,
            *finalizers,
            *trimmers,
            *electors,
            *self._reassigners,
            *self._new_movers(),
            self._new(PlainProducer, "all", ("plain", 0), -1),
            self._new(Surveyor, "surveyor", ("plain", 0), self.watch.committed_end),
            self._new(PlainProducer, "one", ("plain", 1), 1, is_promised=False),
            self._new(IdempotentProducer, "idem", ("plain", 1)),
            self._new(TransactionalProducer, "txn", [("plain", 0), ("source", 0)]),
            self._new(Reader, "reader", ("plain", 0), READ_UNCOMMITTED),
            self._new(Reader, "careful", ("copies", 0), READ_COMMITTED),
        ]

    async def _faults(self, machines: list[str]) -> None:
        faults = MemberFaults(
            self._rng,
            self.network,
            self._story,
            self.members,
            machines,
            self.ensemble,
            self.watch,
            cuts_all_power=self._cuts_all_power,
            upgrades=self._upgrades,
        )
        await faults.happen(self._rng.randint(2, 5))

    async def become_whole(self) -> None:
        await self._wait_while(self.watch.why_not_whole)

    async def _wait_while(self, why_not: Callable[[], str]) -> None:
        told = ""
        while why := why_not():
            if why != told:
                self._story.tell("world", f"waits: {why}")
            told = why
            await asyncio.sleep(0.1)

    async def _judge_all(self, admin: Admin) -> None:
        await super()._judge_all(admin)
        await self.become_whole()
        self.watch.check_logs_agree()
        for reassigner in self._reassigners:
            reassigner.check()
        for configurer in self._configurers:
            configurer.check(self._stored_configs(), {node.id: _configs_of(node) for node in self.members})
        if self._upgrades is not None:
            self._upgrades.check()
        await self._wait_while(self.watch.why_not_tidy)
        if self._brings_leaders_back:
            while not self.watch.is_balanced():
                await asyncio.sleep(0.1)
        if self._rng.random() < 0.25:
            await self._commit_without(admin, self._rng.choice(_PARTITIONS))

    def _stored_configs(self) -> Configs:
        return _of_topics(ZnodeMetadata(self.ensemble.zookeeper.connect()).load().configs)

    async def _commit_without(self, admin: Admin, key: TopicPartition) -> None:
        """One record is committed although a follower cannot be reached, and nothing else happens."""
        leader, followers = self.watch.leader_of(key), self.watch.followers_of(key)
        assert leader is not None
        follower = next((one for one in followers if not one.is_controller), None)
        needed = int(self._stored_configs().get(key[0], {}).get("min.insync.replicas", "2"))
        if follower is None or len(followers) < max(needed, _FACTOR - 1):
            return
        self._story.tell("network", f"{leader.machine} and {follower.machine} are apart")
        links = [self.network.link(*ends) for ends in permutations((leader.machine, follower.machine))]
        for link in links:
            link.cut()
        began = self._loop.time()
        await admin.write_one(key)
        if self._loop.time() - began > _COMMITTED_S:
            raise self.judge.violated(f"a record of {key} was not committed within {_COMMITTED_S:g} s")
        for link in links:
            link.heal()


def _configs_of(node: MemberNode) -> Configs:
    """What a broker goes by."""
    assert node.parts is not None
    return _of_topics(node.parts.metadata.image.configs)


def _of_topics(configs: Mapping[ConfigResource, Mapping[str, str]]) -> Configs:
    return {one.name: set_ for one, set_ in configs.items() if one.type is ResourceType.TOPIC}
