"""What may happen to one broker of a cluster: killed, stopped, without power, with an empty disk, paused, cut off.

Owns to which brokers something happens now, and what must not come together. A broker that loses its disk, or what was
not synced, does so only while the others have all of it: while all replicas are in sync, while none of its own counts,
or while it leads nothing and whoever leads is well. And no other broker or session ends before the cluster has noticed:
else the one that has lost something could be the last that counts as in sync. Must not know which life is drawn when.
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

_STOPPED_S = 3.0

Life = Callable[[MemberNode], Coroutine[Any, Any, None]]


class MemberLives:
    def __init__(
        self,
        rng: Random,
        network: Network,
        story: Story,
        nodes: Sequence[MemberNode],
        ensemble: Ensemble,
        watch: MemberWatch,
    ) -> None:
        self._rng = rng
        self._network = network
        self._story = story
        self._nodes = nodes
        self._ensemble = ensemble
        self._watch = watch
        self.busy: set[MemberNode] = set()
        """Nodes to which something happens."""
        self._lost: set[MemberNode] = set()
        """Those that have lost something, which may not have been noticed."""
        self._beside: list[asyncio.Task[None]] = []

    def is_free(self, node: MemberNode) -> bool:
        return node not in self.busy and node.is_up

    async def live(self, node: MemberNode, life: Life) -> None:
        if not self.is_free(node) or self.is_loss_unnoticed(beside=node):
            return
        self.busy.add(node)
        try:
            await life(node)
        finally:
            self.busy.discard(node)

    def begin(self, node: MemberNode, life: Life) -> None:
        """Without waiting for its end."""
        self._beside.append(asyncio.create_task(self.live(node, life)))

    async def finish(self) -> None:
        await asyncio.gather(*self._beside)

    # Losing something

    def is_loss_unnoticed(self, beside: MemberNode | None = None) -> bool:
        """Whether a broker, or another one than a given one, has lost something and still counts as in sync."""
        is_whole = not self._watch.why_not_whole()
        self._lost = {lost for lost in self._lost if not is_whole and self._watch.is_in_sync(lost)}
        return any(node is not beside for node in self._lost)

    def _may_lose(self, node: MemberNode) -> bool:
        if not self._watch.may_lose_replicas_of(node):
            return False
        if not self._watch.is_in_sync(node):
            return True
        if not self._ensemble.is_reachable:
            return False
        is_followed = self.busy <= {node} and self._watch.is_mere_follower(node)
        return is_followed or not self._watch.why_not_whole()

    # Lives

    async def kill(self, node: MemberNode) -> None:
        node.kill()
        await self._start_again(node)

    async def bounce(self, node: MemberNode) -> None:
        """Perhaps before anybody has seen its death."""
        node.kill()
        await asyncio.sleep(self._rng.choice((0.0, 0.05, 0.2)) * self._rng.random())
        node.start()

    async def leave(self, node: MemberNode) -> None:
        """For so long that the others go on without it."""
        node.kill()
        await asyncio.sleep(self._rng.uniform(0.8, 2.2))
        node.start()

    async def stop(self, node: MemberNode) -> None:
        if node.is_serving:
            await node.stop()
            await self._start_again(node)

    async def unregister(self, node: MemberNode) -> None:
        """Taken out of the cluster it stops by itself, and is started again."""
        controller = next((one for one in self._nodes if one.is_controller), None)
        if controller is None or not node.is_serving:
            return
        deciding, process = controller.process, node.process
        asked = controller.unregister(node.id)
        while not (asked.done() or deciding.is_dead):
            await asyncio.sleep(0.05)
        if not asked.done() or asked.exception() is None:
            # Where its session ended meanwhile, it has registered again.
            for _ in range(round(_STOPPED_S / 0.05)):
                if process.is_dead:
                    break
                await asyncio.sleep(0.05)
        await self._start_again(node)

    async def cut_power(self, node: MemberNode) -> None:
        self.end_without_power(node)
        await self._start_again(node)

    def end_without_power(self, node: MemberNode) -> None:
        """Or kill it, if it may not lose what was not synced."""
        if self._may_lose(node):
            self._lost.add(node)
            node.cut_power()
        else:
            node.kill()

    async def wipe(self, node: MemberNode) -> None:
        self.end_empty(node)
        await self._start_again(node)

    def end_empty(self, node: MemberNode) -> None:
        """Kill it, and take its disk away if it may lose that."""
        may_lose = self._may_lose(node)
        node.kill()
        if may_lose:
            self._lost.add(node)
            node.wipe()

    async def lose_disk(self, node: MemberNode) -> None:
        """One of two fails under the broker, and is there again at a later start: as it was, or empty.

        The broker may start in between. Only what does not count as in sync may be gone.
        """
        if len(node.disks) == 1 or not node.is_serving:
            return
        number = self._rng.randrange(len(node.disks))
        node.break_disk(number)
        await asyncio.sleep(self._rng.uniform(0.05, 2.0))
        if self._rng.random() < 0.4:
            await self._restart(node)
            await asyncio.sleep(self._rng.uniform(0.05, 1.0))
        await self._end(node)
        kept = node.disks.partitions_on(number)
        node.replace_disk(number, is_empty=self._rng.random() < 0.6 and self._watch.may_lose_some(node, kept))
        await self._start_again(node)

    async def _restart(self, node: MemberNode) -> None:
        await self._end(node)
        node.start()

    async def _end(self, node: MemberNode) -> None:
        if node.is_serving and self._rng.random() < 0.5:
            await node.stop()
        elif node.is_up:
            node.kill()

    async def _start_again(self, node: MemberNode) -> None:
        await asyncio.sleep(self._rng.choice((0.0, 0.05, 0.4, 1.6)) * self._rng.random())
        node.start()
        if self._rng.random() < 0.2:
            # Again, perhaps in the middle of its start.
            await asyncio.sleep(self._rng.uniform(0.0, 0.05))
            if node.is_up:
                await self.kill(node)

    async def pause(self, node: MemberNode) -> None:
        """Often longer than a session."""
        process = node.process
        node.pause()
        await asyncio.sleep(self._rng.uniform(0.05, 2.0))
        if node.is_up and node.process is process:
            node.resume()

    async def lose_session(self, node: MemberNode) -> None:
        self._ensemble.cut_off(node.machine)
        await asyncio.sleep(self._rng.uniform(0.05, 1.6))
        self._ensemble.reach_again(node.machine)

    async def part(self, node: MemberNode) -> None:
        """From brokers and ZooKeeper: its clients still reach it."""
        self._ensemble.cut_off(node.machine)
        await self.separate(node, self._rng.uniform(0.1, 2.0))
        self._ensemble.reach_again(node.machine)

    async def separate(self, node: MemberNode, seconds: float) -> None:
        """From all other brokers, one way or both ways."""
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

    async def seem_dead(self, node: MemberNode) -> None:
        """Firewalls refuse the other brokers, which cannot tell that from a dead process; clients still reach it.

        Its own connections to them are refused as well, or nobody answers: else it would connect again at once. Where
        some of its connections are left it does not look dead.
        """
        others = [other for other in self._nodes if other is not node]
        into = [self._network.link(other.machine, node.machine) for other in others]
        out = [self._network.link(node.machine, other.machine) for other in others]
        share = self._rng.choice((0.0, 0.5, 1.0, 1.0))
        is_refused = share < 1.0 or self._rng.random() < 0.5
        self._story.tell("network", f"makes {node.machine} look dead to other brokers")
        for link in into:
            link.is_rejecting = True
        for link in out:
            link.is_rejecting = is_refused
            if not is_refused:
                link.cut()
        processes = {other.process for other in others if other.is_up}
        self._network.end_connections(node.process, lambda peer: peer in processes and self._rng.random() < share)
        await asyncio.sleep(self._rng.uniform(0.2, 1.6))
        self._story.tell("network", f"lets {node.machine} and other brokers reach each other again")
        for link in (*into, *out):
            link.heal()
