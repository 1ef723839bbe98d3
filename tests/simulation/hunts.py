"""Misfortunes that come at the worst moment: hunts for the leaders of a partition, for the controller, for who returns.

Owns these moments, which are found by looking into the brokers: blind chance would seldom meet them. What happens then
is what might happen at any other time. Must not know clients, nor how often hunts come.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from random import Random

from lamina.broker.partitions.partition import Partition
from tests.simulation.ensemble import Ensemble
from tests.simulation.judge import TopicPartition
from tests.simulation.links import Link
from tests.simulation.member_lives import Life, MemberLives
from tests.simulation.member_node import MemberNode
from tests.simulation.member_watch import MemberWatch
from tests.simulation.network import Network

_LOOK_S = 0.004
_ELECTION_S = 2.5
_AHEAD_S = 0.4
"""Less than a follower may be behind before it leaves the in-sync set."""
_SLOW_MS = (20.0, 250.0)
_OWN = ("plain",)
"""The topic that most clients write to."""
_LATE_MS = (250.0, 700.0)


class Hunts:
    def __init__(
        self,
        rng: Random,
        network: Network,
        nodes: Sequence[MemberNode],
        ensemble: Ensemble,
        watch: MemberWatch,
        lives: MemberLives,
    ) -> None:
        self._rng = rng
        self._network = network
        self._nodes = nodes
        self._ensemble = ensemble
        self._watch = watch
        self._lives = lives

    async def _until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Look again and again, but not for ever."""
        for _ in range(round(seconds / _LOOK_S)):
            if holds():
                return True
            await asyncio.sleep(_LOOK_S)
        return holds()

    def _controller(self) -> MemberNode | None:
        return next((node for node in self._nodes if node.is_controller), None)

    # Leaders

    async def hunt_leaders(self) -> None:
        """One leader of a partition after the other, each while others lack what it has, or do not know it committed.

        Some replicas hear little of each other meanwhile, so that the next leader may lack it, and the one after that
        have it.
        """
        own = [key for key in self._watch.partitions if key[0] in _OWN]
        key = self._rng.choice(own if self._rng.random() < 0.7 else self._watch.partitions)
        if self._rng.random() < 0.35:
            await self._hunt_apart(key)
            return
        for _ in range(self._rng.randint(2, 4)):
            leader = self._watch.leader_of(key)
            if leader is None or not self._lives.is_free(leader):
                return
            await self._rng.choice((self._leave_behind, self._leave_behind_all, self._leave_unaware))(key, leader)
            await asyncio.sleep(self._rng.choice((0.0, 0.05, 0.3)) * self._rng.random())

    async def _leave_behind(self, key: TopicPartition, leader: MemberNode) -> None:
        """Between some replicas nothing comes through, or late; the leader ends when one lacks something."""
        links = self._between(leader, key, 0.35)
        for link in links:
            if self._rng.random() < 0.5:
                link.cut()
            else:
                link.delay_ms = _SLOW_MS
        await self._end(leader, key, _lacks_records, any)
        _heal(links)

    async def _leave_behind_all(self, key: TopicPartition, leader: MemberNode) -> None:
        """The leader ends when nobody else has all that it has, and may be away for long."""
        links = [self._network.link(leader.machine, node.machine) for node in self._watch.followers_of(key)]
        for link in links:
            link.cut()
        await self._end(leader, key, _lacks_records, all)
        _heal(links)

    async def _leave_unaware(self, key: TopicPartition, leader: MemberNode) -> None:
        """Answers take long; the leader ends when nobody else knows all that it has committed."""
        links = self._between(leader, key, 0.5)
        links += [self._network.link(leader.machine, node.machine) for node in self._watch.followers_of(key)]
        for link in links:
            link.delay_ms = _SLOW_MS
        await self._end(leader, key, lambda one, led: one.high_watermark < led.high_watermark, all)
        _heal(links)

    async def _hunt_apart(self, key: TopicPartition) -> None:
        """The next leader lacks what others have, and nobody hears of what it writes instead before it ends too."""
        leader, followers = self._watch.leader_of(key), self._watch.followers_of(key)
        if leader is None or not all(self._lives.is_free(node) for node in (leader, *followers)):
            return
        node = followers[0]
        links = [self._network.link(leader.machine, node.machine)]
        for other in followers[1:]:
            links += [self._network.link(*ends) for ends in permutations((node.machine, other.machine))]
        for link in links:
            link.cut()
        await self._end(leader, key, _lacks_records, any)
        if self._watch.leader_of(key) is node:
            await self._end(node, key, _lacks_records, all)
        _heal(links)

    def _between(self, leader: MemberNode, key: TopicPartition, chance: float) -> list[Link]:
        """Some of the ways between the replicas."""
        machines = [leader.machine, *(node.machine for node in self._watch.followers_of(key))]
        return [self._network.link(*ends) for ends in permutations(machines, 2) if self._rng.random() < chance]

    async def _end(
        self,
        leader: MemberNode,
        key: TopicPartition,
        is_behind: Callable[[Partition, Partition], bool],
        some: Callable[[Iterable[bool]], bool],
    ) -> None:
        """As soon as others are behind, or after a while; then wait until another one leads."""

        def are_behind() -> bool:
            led, others = self._watch.replicas_of(key)
            return led is not None and some(is_behind(one, led) for one in others)

        await self._until(are_behind, _AHEAD_S)
        lives = self._lives
        kinds: Sequence[Life] = (lives.kill, lives.leave, lives.pause, lives.lose_session, lives.part, lives.cut_power)
        lives.begin(leader, self._rng.choice(kinds))
        await self._until(lambda: self._is_led_by_another(key, leader), _ELECTION_S)

    def _is_led_by_another(self, key: TopicPartition, leader: MemberNode) -> bool:
        return self._watch.leader_of(key) not in (leader, None)

    # The controller

    async def replace_controller(self) -> None:
        """It is paused with a request to change an in-sync set before it, and goes on as soon as it is replaced."""
        controller = self._controller()
        keys = [key for key in self._watch.partitions if self._watch.leader_of(key) not in (controller, None)]
        if controller is None or not keys or not self._lives.is_free(controller):
            return
        key = self._rng.choice(keys)
        leader = self._watch.leader_of(key)
        assert leader is not None
        followers = [node for node in self._watch.followers_of(key) if node is not controller]
        if not followers:
            return
        ends = [leader.machine, self._rng.choice(followers).machine]
        links = [self._network.link(*pair) for pair in permutations(ends)]
        for link in links:
            link.cut()
        await asyncio.sleep(self._rng.uniform(0.2, 0.9))
        await self._lives.live(controller, self._pause_until_replaced)
        await asyncio.sleep(self._rng.uniform(0.0, 0.3))
        _heal(links)

    async def _pause_until_replaced(self, node: MemberNode) -> None:
        process, epoch = node.process, self._ensemble.controller_epoch
        node.pause()
        await self._until(lambda: self._ensemble.controller_epoch != epoch, _ELECTION_S)
        await asyncio.sleep(self._rng.choice((0.0, 0.02, 0.2)) * self._rng.random())
        if node.is_up and node.process is process:
            node.resume()

    # Who returns

    async def return_behind(self) -> None:
        """A broker comes back behind the others, together with them: nobody knows any more what was committed."""
        if self._lives.busy or not all(node.is_up for node in self._nodes) or self._lives.is_loss_unnoticed():
            return
        node = self._rng.choice(self._nodes)
        others = [other for other in self._nodes if other is not node]
        ways = [self._network.link(*ends) for ends in permutations([other.machine for other in others], 2)]
        links = [way for way in ways if self._rng.random() < 0.6]

        async def life(node: MemberNode) -> None:
            node.kill()
            await self._until(lambda: not self._watch.is_in_sync(node), _ELECTION_S)
            await asyncio.sleep(self._rng.uniform(0.2, 0.8))
            for link in links:
                link.delay_ms = _LATE_MS
            await asyncio.gather(*(self._lives.live(other, self._lives.bounce) for other in others), self._back(node))
            await asyncio.sleep(self._rng.uniform(0.3, 1.0))

        await self._lives.live(node, life)
        _heal(links)

    async def _back(self, node: MemberNode) -> None:
        await asyncio.sleep(self._rng.choice((0.0, 0.1, 0.5)) * self._rng.random())
        node.start()

    async def return_twice(self) -> None:
        """A broker comes back and is about to be in sync again; it ends once more before the controller hears so."""
        controller = self._controller()
        leaders = {self._watch.leader_of(key) for key in self._watch.partitions} - {controller, None}
        free = [node for node in self._nodes if node is not controller and self._lives.is_free(node)]
        nodes = [node for node in free if leaders - {node}]
        if controller is None or not nodes:
            return
        node = self._rng.choice(nodes)
        others = [other.machine for other in self._nodes if other not in (node, controller)]
        to_controller = [self._network.link(machine, controller.machine) for machine in others]
        to_node = [self._network.link(machine, node.machine) for machine in others]

        async def life(node: MemberNode) -> None:
            node.kill()
            await self._until(lambda: not self._watch.is_in_sync(node), _ELECTION_S)
            for link in to_controller:
                link.delay_ms = _LATE_MS
            node.start()
            await self._until(lambda: self._watch.is_about_to_join(node), _ELECTION_S)
            if node.is_up:
                self._rng.choice((self._lives.end_empty, self._lives.end_without_power))(node)
            # What it has lost it does not get again so soon.
            for link in to_node:
                link.cut()
            node.start()
            await asyncio.sleep(self._rng.uniform(0.4, 1.2))

        await self._lives.live(node, life)
        _heal([*to_controller, *to_node])


def _lacks_records(one: Partition, led: Partition) -> bool:
    return one.log.log_end_offset < led.log.log_end_offset


def _heal(links: Iterable[Link]) -> None:
    for link in links:
        link.heal()
