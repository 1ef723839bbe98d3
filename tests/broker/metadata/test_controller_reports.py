"""The controller's shell, on the ZooKeeper in memory and in virtual time: what it makes of reports."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from lamina.broker.counters import ReplicationCounters
from lamina.broker.metadata import controller
from lamina.broker.metadata.controller import Controller
from lamina.broker.metadata.follow_messages import NOTHING_YET, FollowRequest
from lamina.broker.metadata.reports import Report
from lamina.broker.threads import Threads
from lamina.controller.election import NO_FACTS, LogEnd
from lamina.errors import NotController
from lamina.image.changes import create_topic
from lamina.image.image import Broker
from lamina.image.topic import NO_LEADER, Partition
from lamina.settings.listeners import Listener
from lamina.store.cluster_identity import cluster_id
from lamina.store.membership import Membership
from lamina.store.registration import Registration
from lamina.store.znodes import ZnodeMetadata
from tests.broker.metadata.test_controller import never_refused, never_removed
from tests.simulation.clocks import NodeClocks
from tests.simulation.executor import SimulatedExecutor
from tests.simulation.loop import VirtualLoop
from tests.store.memory_zookeeper import MemoryZooKeeper

KEY = ("t", 0)
UNCLEAN_WAIT_MS = 10_000
STARTING = Report()


class Office:
    """A controller, and brokers that report to it."""

    def __init__(self, loop: VirtualLoop) -> None:
        session = MemoryZooKeeper().connect()
        cluster_id(session, "cluster")
        membership, store = Membership(session, 9), ZnodeMetadata(session)
        membership.try_register(Registration((), None, "0.1", True, ("dir",), 1))
        tenure = membership.elect()
        assert tenure is not None
        threads = Threads(
            loop, NodeClocks(loop).clocks, 1, new_executor=lambda count, _: SimulatedExecutor(loop, Random(2), count)
        )
        self.controller = Controller(
            9,
            loop,
            tenure,
            store.load(),
            store,
            threads,
            UNCLEAN_WAIT_MS,
            NO_FACTS,
            ReplicationCounters(),
            never_refused,
            never_removed,
            lambda: None,
        )
        self._epochs: dict[int, int] = {}

    async def registered(self, **epochs: int) -> None:
        """As in ``registered(b1=5)``: broker 1 in epoch 5."""
        self._epochs = {int(name[1:]): epoch for name, epoch in epochs.items()}
        await self.controller.brokers_registered(
            {
                one: Broker(one, {"L": Listener("L", "PLAINTEXT", "h", one)}, None, at)
                for one, at in self._epochs.items()
            }
        )

    async def report(self, broker_id: int, report: Report) -> None:
        asked = FollowRequest(NOTHING_YET, NOTHING_YET, 0, report)
        await self.controller.follow(broker_id, self._epochs[broker_id], asked)

    @property
    def partition(self) -> Partition:
        return self.controller.stream.image.partition(*KEY)


@pytest.fixture(autouse=True, params=["few", "many"])
def partitions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many, decisions are taken on a thread."""
    if request.param == "many":
        monkeypatch.setattr(controller, "_AT_ONCE", 0)


def live(script: Callable[[Office], Coroutine[Any, Any, None]]) -> None:
    """Two brokers serve a partition of one topic, led by the first; then what the script says."""
    loop = VirtualLoop(Random(1))

    async def told() -> None:
        office = Office(loop)
        await office.controller.begin({}, frozenset())
        await office.registered(b1=1, b2=1)
        for broker_id in (1, 2):
            await office.report(broker_id, STARTING)
            await office.report(broker_id, Report(is_ready=True))
        await office.controller.change(lambda image: create_topic(image, "t", bytes(16), [(1, 2)]))
        made = frozenset([KEY])
        for broker_id in (1, 2):
            await office.report(broker_id, Report(is_ready=True, made=made))
        assert (office.partition.leader, office.partition.isr) == (1, (1, 2))
        await script(office)

    try:
        loop.run(told(), limit_s=100)
    finally:
        loop.close()


def unclean(last_epoch: int, log_end_offset: int) -> Report:
    return Report(is_ready=True, ends={KEY: LogEnd(last_epoch, log_end_offset)})


def test_after_a_power_cut_of_all_the_one_whose_log_reaches_furthest_leads() -> None:
    async def script(office: Office) -> None:
        await office.registered()
        assert (office.partition.leader, office.partition.isr) == (NO_LEADER, (1, 2))
        await office.registered(b1=2, b2=2)
        for broker_id in (1, 2):
            await office.report(broker_id, STARTING)
        await office.report(1, unclean(0, 5))
        assert office.partition.leader == NO_LEADER, "the other one may have more"
        await office.report(2, unclean(0, 7))
        assert (office.partition.leader, office.partition.isr) == (2, (2,))

    live(script)


def test_who_comes_back_alone_after_a_power_cut_leads_after_a_while() -> None:
    async def script(office: Office) -> None:
        await office.registered()
        await office.registered(b1=2)
        await office.report(1, STARTING)
        await office.report(1, unclean(0, 5))
        await asyncio.sleep(UNCLEAN_WAIT_MS / 1000 - 0.1)
        assert office.partition.leader == NO_LEADER
        await asyncio.sleep(0.2)
        assert (office.partition.leader, office.partition.isr) == (1, (1,))

    live(script)


def test_a_lost_replica_is_made_again_once_it_is_out_of_the_in_sync_set() -> None:
    async def script(office: Office) -> None:
        await office.registered()
        await office.registered(b1=2, b2=2)
        lost = Report(is_ready=True, lost=frozenset([KEY]), offline=frozenset([KEY]))
        await office.report(2, lost)
        assert 2 in office.partition.isr
        assert 2 in office.partition.made_on, "nobody else is there who has what was committed"
        await office.report(1, Report(is_ready=True))
        assert (office.partition.leader, office.partition.isr) == (1, (1,))
        await office.report(2, lost)
        assert office.partition.made_on == (1,)

    live(script)


def test_a_controller_that_is_about_to_stop_sends_away_who_has_followed_it_all() -> None:
    """Whoever were answered with nothing would ask again at once, this broker itself above all."""

    async def script(office: Office) -> None:
        stream = office.controller.stream
        up_to_date = FollowRequest(
            stream.controller_epoch, stream.version, 2000, Report(is_ready=True, made=frozenset([KEY]))
        )
        stream.release()
        with pytest.raises(NotController, match="about to stop"):
            await office.controller.follow(1, 1, up_to_date)
        told = await office.controller.follow(1, 1, up_to_date._replace(version=stream.version - 1))
        assert (told.version, len(told.lines)) == (stream.version, 1)

    live(script)
