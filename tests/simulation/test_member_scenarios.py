"""What happened once in a simulated cluster and was wrong, told again as a short scenario; nothing else goes wrong."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from lamina.store.membership import BROKER_IDS
from tests.simulation.clients import Admin
from tests.simulation.clusters import Members, Universe
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network, SimulatedConnector
from tests.simulation.randomness import seeded
from tests.simulation.story import Story

Script = Callable[[Members], Coroutine[Any, Any, None]]
LONGER_THAN_A_SESSION_S = 4.0


def live(script: Script, given: Mapping[str, str] = MappingProxyType({})) -> None:
    """Three brokers with a topic of two partitions; then what the script says. The watch looks after every step."""
    rng = Random(7)
    loop = VirtualLoop(rng)
    story = Story(lambda: loop.now_ns)

    def fail(why: str) -> None:
        raise AssertionError(why)

    async def told() -> None:
        for node in members.members:
            node.start()
        await members.become_whole()
        admin = Admin("admin", members.around, SimulatedConnector(members.network, "admin", "admin"))
        await loop.spawn(loop.new_process("admin"), admin.create_topics({"t": 2}))
        await members.become_whole()
        await script(members)
        async with asyncio.timeout(30):
            await members.become_whole()

    try:
        with seeded(7):
            members = Members(Universe(loop, rng, Network(loop, rng), story, fail), 3, given)
            loop.on_idle = members.look
            loop.run(told(), limit_s=120)
    except BaseException:
        print("\n".join(story.lines))
        raise
    finally:
        loop.close()


def controllers(members: Members) -> list[int]:
    return [
        node.id
        for node in members.members
        if node.parts and node.parts.member_parts and node.parts.member_parts.member.controller
    ]


def stored_states(members: Members) -> dict[str, tuple[int, list[int]]]:
    """The leader and the in-sync set of each partition."""
    entries = members.ensemble.zookeeper.entries
    states = {path: json.loads(entry.value) for path, entry in entries.items() if path.endswith("/state")}
    return {path: (state["leader"], state["isr"]) for path, state in states.items()}


def are_ready(members: Members) -> bool:
    entries = members.ensemble.zookeeper.entries
    return all(b'"ready":true' in entries[f"{BROKER_IDS}/{node.id}"].value for node in members.members)


def test_a_broker_takes_no_role_of_its_former_life() -> None:
    """It starts before its death was seen, and is told an image that still has its former registration."""

    async def script(members: Members) -> None:
        for node in members.members * 3:
            node.kill()
            node.start()
            await members.become_whole()

    live(script)


def test_a_controller_whose_session_outlived_the_ensembles_absence_is_elected_again() -> None:
    async def script(members: Members) -> None:
        members.ensemble.go_away()
        await asyncio.sleep(LONGER_THAN_A_SESSION_S)
        assert not controllers(members)
        members.ensemble.come_back(chance_of_loss=0.0)
        await asyncio.sleep(LONGER_THAN_A_SESSION_S)
        assert len(controllers(members)) == 1

    live(script)


def test_a_paused_leader_is_replaced_and_follows_afterwards() -> None:
    async def script(members: Members) -> None:
        for node in members.members:
            node.pause()
            await asyncio.sleep(LONGER_THAN_A_SESSION_S)
            node.resume()
            await members.become_whole()

    live(script)


def test_brokers_that_all_lost_their_sessions_register_and_lead_again() -> None:
    async def script(members: Members) -> None:
        members.ensemble.go_away()
        await asyncio.sleep(1.0)
        members.ensemble.come_back(chance_of_loss=1.0)
        await asyncio.sleep(LONGER_THAN_A_SESSION_S)
        assert are_ready(members), "the next controller waits for their reports"

    live(script)


def test_brokers_that_all_lost_their_sessions_keep_their_leaders_and_in_sync_sets() -> None:
    """Whoever is elected first waits a moment for the others: they have not failed, and come back with it."""

    async def script(members: Members) -> None:
        before = stored_states(members)
        members.ensemble.go_away()
        await asyncio.sleep(1.0)
        members.ensemble.come_back(chance_of_loss=1.0)
        await asyncio.sleep(LONGER_THAN_A_SESSION_S)
        assert stored_states(members) == before

    live(script)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_leaders_return_by_themselves_unless_that_is_switched_off_r49(is_enabled: bool) -> None:
    async def script(members: Members) -> None:
        leader = members.watch.leader_of(("t", 0))
        assert leader is not None
        await leader.stop()
        leader.start()
        await members.become_whole()
        await asyncio.sleep(LONGER_THAN_A_SESSION_S)
        assert (members.watch.leader_of(("t", 0)) is leader) == is_enabled

    text = str(is_enabled).lower()
    live(script, {"leader.imbalance.check.interval.seconds": "2", "auto.leader.rebalance.enable": text})


def test_a_wiped_broker_copies_everything_again() -> None:
    async def script(members: Members) -> None:
        for node in members.members:
            node.kill()
            node.wipe()
            node.start()
            await members.become_whole()

    live(script)
