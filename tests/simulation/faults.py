"""What goes wrong while clients work: drawn one after another, and healed in the end.

Owns which faults there are and how long each lasts. Must not know what clients do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from tests.simulation.judge import Judge
from tests.simulation.network import Network
from tests.simulation.node import Node
from tests.simulation.story import Story

_SLOW_MS = (10.0, 160.0)
_JUMP_MS = 20 * 60_000
"""Less than `message.timestamp.after.max.ms`, so that no record comes from too far in the future."""


class Faults:
    """Of the nodes of one cluster."""

    def __init__(
        self,
        rng: Random,
        network: Network,
        story: Story,
        judge: Judge,
        nodes: Sequence[Node],
        machines: Sequence[str],
        *,
        cuts_power: bool,
    ) -> None:
        """``machines`` are all that speak to the nodes."""
        self._rng = rng
        self._network = network
        self._story = story
        self._judge = judge
        self._nodes = nodes
        self._machines = machines
        self._kinds: list[Callable[[Node], Awaitable[None]]] = [
            self._kill,
            self._stop,
            self._pause,
            self._drop_connections,
            self._cut_link,
            self._slow_link,
            self._set_clock,
        ]
        if cuts_power:
            self._kinds.append(self._cut_power)

    async def happen(self, count: int) -> None:
        """One after another; each node is up and whole again after its own."""
        for _ in range(count):
            await asyncio.sleep(self._rng.uniform(0.02, 0.5))
            await self._rng.choice(self._kinds)(self._rng.choice(self._nodes))
        self._network.heal()

    # Of a node

    async def _kill(self, node: Node) -> None:
        node.kill()
        await self._start_again(node)

    async def _cut_power(self, node: Node) -> None:
        self._judge.lost_power()
        node.cut_power()
        await self._start_again(node)

    async def _stop(self, node: Node) -> None:
        if node.is_serving:
            await node.stop()
            await self._start_again(node)

    async def _start_again(self, node: Node) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, 0.6))
        node.start()
        if self._rng.random() < 0.2:
            # Again, perhaps in the middle of its start.
            await asyncio.sleep(self._rng.uniform(0.0, 0.01))
            await self._kill(node)

    async def _pause(self, node: Node) -> None:
        process = node.process
        node.pause()
        await asyncio.sleep(self._rng.uniform(0.05, 3.0))
        if node.is_up and node.process is process:
            node.resume()

    async def _set_clock(self, node: Node) -> None:
        jump_ms = self._rng.randint(-_JUMP_MS, _JUMP_MS)
        self._story.tell(node.machine, f"its clock is {jump_ms} ms off")
        node.clocks.jump(jump_ms)
        await asyncio.sleep(self._rng.uniform(0.05, 0.5))
        node.clocks.jump(-jump_ms)

    # Of the network

    async def _drop_connections(self, node: Node) -> None:
        self._story.tell("network", f"drops connections to {node.machine}")
        self._network.end_connections(node.process, lambda _: self._rng.random() < 0.6)

    async def _cut_link(self, node: Node) -> None:
        """One way."""
        ends = [node.machine, self._rng.choice(self._machines)]
        self._rng.shuffle(ends)
        self._story.tell("network", f"{ends[0]} cannot reach {ends[1]}")
        self._network.link(*ends).cut()
        await asyncio.sleep(self._rng.uniform(0.05, 1.6))
        self._story.tell("network", f"{ends[0]} can reach {ends[1]} again")
        self._network.link(*ends).heal()

    async def _slow_link(self, node: Node) -> None:
        machine = self._rng.choice(self._machines)
        self._story.tell("network", f"it is far from {machine} to {node.machine}")
        for ends in ((machine, node.machine), (node.machine, machine)):
            self._network.link(*ends).delay_ms = _SLOW_MS
        await asyncio.sleep(self._rng.uniform(0.05, 0.8))
        self._network.heal()
