"""What goes wrong in a cluster: several things at a time, on several machines, and healed in the end.

Owns which faults there are, and what must not come together. Each world draws how often each kind comes, so that some
see much of one and nothing of another. A broker that loses its disk, or what was not synced, does so only while all
replicas are in sync, or while none of its own counts; and no other broker or session ends before the cluster has
noticed: else the one that has lost something could be the last that counts as in sync. What brokers lose together
nobody promised to keep. Must not know what clients do.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from tests.simulation.ensemble import Ensemble
from tests.simulation.links import Link
from tests.simulation.member_node import MemberNode
from tests.simulation.member_watch import MemberWatch
from tests.simulation.network import Network
from tests.simulation.story import Story

_SLOW_MS = (10.0, 160.0)
_JUMP_MS = 20 * 60_000
_DISTANCES_MS = ((0.1, 2.0), (0.1, 2.0), (1.0, 20.0), (5.0, 60.0))
"""How far brokers may be from each other in a whole world."""
_HUNT_S = 2.5
_ALONE_S = 2.5

Life = Callable[[MemberNode], Coroutine[Any, Any, None]]
Trouble = Callable[[], Coroutine[Any, Any, None]]


class MemberFaults:
    def __init__(
        self,
        rng: Random,
        network: Network,
        story: Story,
        nodes: Sequence[MemberNode],
        machines: Sequence[str],
        ensemble: Ensemble,
        watch: MemberWatch,
        *,
        cuts_all_power: bool,
    ) -> None:
        """``machines`` are those of clients."""
        self._rng = rng
        self._network = network
        self._story = story
        self._nodes = nodes
        self._machines = [*machines, *(node.machine for node in nodes)]
        self._ensemble = ensemble
        self._watch = watch
        self._busy: set[MemberNode] = set()
        """Nodes to which something happens."""
        self._lost: set[MemberNode] = set()
        """Those that have lost something, which may not have been noticed."""
        self._beside: list[asyncio.Task[None]] = []
        """What a hunt has begun."""
        self._lives: dict[Life, int] = self._drawn(
            self._kill, self._stop, self._pause, self._cut_power, self._wipe, self._lose_session
        )
        self._troubles: dict[Trouble, int] = self._drawn(
            self._isolate,
            self._hunt_leaders,
            self._cut_link,
            self._slow_link,
            self._drop_connections,
            self._set_clock,
            self._lose_ensemble,
            self._cut_all_power if cuts_all_power else self._kill_all,
        )
        self._place_brokers()

    def _drawn(self, *kinds: Any) -> dict[Any, int]:
        """How often each comes, in proportion to the others."""
        return {kind: self._rng.choice((0, 1, 1, 4)) for kind in kinds}

    def _one_of(self, kinds: dict[Any, int]) -> Any:
        if not any(kinds.values()):
            return self._rng.choice(list(kinds))
        return self._rng.choices(list(kinds), list(kinds.values()))[0]

    def _place_brokers(self) -> None:
        distance_ms = self._rng.choice(_DISTANCES_MS)
        for node in self._nodes:
            for other in self._nodes:
                if other is not node:
                    self._network.link(node.machine, other.machine).place(distance_ms)

    async def happen(self, count: int) -> None:
        """So many, in two lines at the same time; then all is whole."""
        await asyncio.gather(self._one_by_one(count - count // 2), self._one_by_one(count // 2))
        await asyncio.gather(*self._beside)
        self._network.heal()
        for node in self._nodes:
            node.start()

    async def _one_by_one(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(self._rng.uniform(0.02, 0.8))
            if self._rng.random() < 0.5:
                await self._one_of(self._troubles)()
            else:
                await self._live(self._rng.choice(self._nodes), self._one_of(self._lives))

    async def _live(self, node: MemberNode, life: Life) -> None:
        if node in self._busy or not node.is_up or self._is_loss_unnoticed(beside=node):
            return
        self._busy.add(node)
        try:
            await life(node)
        finally:
            self._busy.discard(node)

    # Losing something

    def _is_loss_unnoticed(self, beside: MemberNode | None = None) -> bool:
        """Whether a broker, or another one than a given one, has lost something and still counts as in sync."""
        is_whole = not self._watch.why_not_whole()
        self._lost = {lost for lost in self._lost if not is_whole and self._watch.is_in_sync(lost)}
        return any(node is not beside for node in self._lost)

    def _may_lose(self, node: MemberNode) -> bool:
        if not self._watch.is_in_sync(node):
            return True
        return not self._watch.why_not_whole() and self._ensemble.is_reachable

    # Of a broker

    async def _kill(self, node: MemberNode) -> None:
        node.kill()
        await self._start_again(node)

    async def _stop(self, node: MemberNode) -> None:
        if node.is_serving:
            await node.stop()
            await self._start_again(node)

    async def _cut_power(self, node: MemberNode) -> None:
        if self._may_lose(node):
            self._lost.add(node)
            node.cut_power()
        else:
            node.kill()
        await self._start_again(node)

    async def _wipe(self, node: MemberNode) -> None:
        may_lose = self._may_lose(node)
        node.kill()
        if may_lose:
            self._lost.add(node)
            node.wipe()
        await self._start_again(node)

    async def _start_again(self, node: MemberNode) -> None:
        await asyncio.sleep(self._rng.choice((0.0, 0.05, 0.4, 1.6)) * self._rng.random())
        node.start()
        if self._rng.random() < 0.2:
            # Again, perhaps in the middle of its start.
            await asyncio.sleep(self._rng.uniform(0.0, 0.05))
            if node.is_up:
                await self._kill(node)

    async def _pause(self, node: MemberNode) -> None:
        """Often longer than a session."""
        process = node.process
        node.pause()
        await asyncio.sleep(self._rng.uniform(0.05, 2.0))
        if node.is_up and node.process is process:
            node.resume()

    async def _lose_session(self, node: MemberNode) -> None:
        self._ensemble.cut_off(node.machine)
        await asyncio.sleep(self._rng.uniform(0.05, 1.6))
        self._ensemble.reach_again(node.machine)

    # Of several

    async def _hunt_leaders(self) -> None:
        """One leader of a partition after the other, each soon after it was elected."""
        key = self._rng.choice(self._watch.partitions)
        lives: Sequence[Life] = (self._kill, self._kill, self._pause, self._lose_session, self._part)
        for _ in range(self._rng.randint(2, 3)):
            leader = self._watch.leader_of(key)
            if leader is None or leader in self._busy:
                return
            await asyncio.sleep(self._rng.choice((0.003, 0.05, 0.5)) * self._rng.random())
            self._beside.append(asyncio.create_task(self._live(leader, self._rng.choice(lives))))
            for _ in range(round(_HUNT_S / 0.005)):
                await asyncio.sleep(0.005)
                if self._watch.leader_of(key) not in (leader, None):
                    break

    async def _kill_all(self) -> None:
        nodes = [node for node in self._nodes if node.is_up and node not in self._busy]
        if len(nodes) == len(self._nodes) and not self._is_loss_unnoticed():
            await asyncio.gather(*(self._live(node, self._kill) for node in nodes))

    async def _cut_all_power(self) -> None:
        """At once: what is left is what was synced before it was acknowledged."""
        if self._busy or not all(node.is_up for node in self._nodes) or self._is_loss_unnoticed():
            return
        self._watch.lost_power()
        for node in self._nodes:
            node.cut_power()
        self._busy.update(self._nodes)
        for node in self._nodes:
            await asyncio.sleep(self._rng.uniform(0.0, 0.4))
            node.start()
            if node is self._nodes[0] and self._rng.random() < 0.3:
                await self._restart_alone(node)
        self._busy.clear()

    async def _restart_alone(self, node: MemberNode) -> None:
        """Stop cleanly before the others are back: no election has told what its unclean stop has cost."""
        for _ in range(round(_ALONE_S / 0.1)):
            await asyncio.sleep(0.1)
            if node.is_serving:
                await node.stop()
                node.start()
                return

    async def _lose_ensemble(self) -> None:
        if self._is_loss_unnoticed():
            return
        self._ensemble.go_away()
        await asyncio.sleep(self._rng.uniform(0.05, 2.4))
        self._ensemble.come_back(self._rng.choice((0.0, 0.3, 1.0)))

    async def _set_clock(self) -> None:
        node = self._rng.choice(self._nodes)
        jump_ms = self._rng.randint(-_JUMP_MS, _JUMP_MS)
        self._story.tell(node.machine, f"its clock is {jump_ms} ms off")
        node.clocks.jump(jump_ms)
        await asyncio.sleep(self._rng.uniform(0.05, 1.2))
        node.clocks.jump(-jump_ms)

    # Of the network

    async def _drop_connections(self) -> None:
        node = self._rng.choice(self._nodes)
        if node.is_up:
            self._story.tell("network", f"drops connections of {node.machine}")
            self._network.end_connections(node.process, lambda: self._rng.random() < 0.6)

    async def _isolate(self) -> None:
        """From all other brokers; perhaps from ZooKeeper too."""
        node = self._rng.choice(self._nodes)
        if self._rng.random() < 0.3:
            await self._live(node, self._part)
        else:
            await self._separate(node, self._rng.uniform(0.1, 2.4))

    async def _part(self, node: MemberNode) -> None:
        """From brokers and ZooKeeper: its clients still reach it."""
        self._ensemble.cut_off(node.machine)
        await self._separate(node, self._rng.uniform(0.1, 2.0))
        self._ensemble.reach_again(node.machine)

    async def _separate(self, node: MemberNode, seconds: float) -> None:
        """One way or both ways."""
        ways = self._rng.choice(("in", "out", "both"))
        links: list[Link] = []
        for other in self._nodes:
            if other is not node:
                links += [self._network.link(node.machine, other.machine)] if ways != "in" else []
                links += [self._network.link(other.machine, node.machine)] if ways != "out" else []
        self._story.tell("network", f"{node.machine} and other brokers are apart, {ways}")
        for link in links:
            link.cut()
        await asyncio.sleep(seconds)
        self._story.tell("network", f"{node.machine} and other brokers are together again")
        for link in links:
            link.heal()

    async def _cut_link(self) -> None:
        """One way."""
        ends = self._drawn_ends()
        self._story.tell("network", f"{ends[0]} cannot reach {ends[1]}")
        self._network.link(*ends).cut()
        await asyncio.sleep(self._rng.uniform(0.05, 1.6))
        self._story.tell("network", f"{ends[0]} can reach {ends[1]} again")
        self._network.link(*ends).heal()

    async def _slow_link(self) -> None:
        ends = self._drawn_ends()
        self._story.tell("network", f"it is far from {ends[0]} to {ends[1]}")
        for link in (self._network.link(*ends), self._network.link(*reversed(ends))):
            link.delay_ms = _SLOW_MS
        await asyncio.sleep(self._rng.uniform(0.05, 1.2))
        for link in (self._network.link(*ends), self._network.link(*reversed(ends))):
            link.heal()

    def _drawn_ends(self) -> tuple[str, str]:
        node, machine = self._rng.choice(self._nodes).machine, self._rng.choice(self._machines)
        return (node, machine) if self._rng.random() < 0.5 else (machine, node)
