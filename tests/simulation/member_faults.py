"""What goes wrong in a cluster: several things at a time, on several machines, and healed in the end.

Owns which faults there are. Each world draws how often each kind comes, so that some see much of one and nothing of
another. What brokers lose together nobody promised to keep. Must not know what clients do.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from tests.simulation.ensemble import Ensemble
from tests.simulation.hunts import Hunts
from tests.simulation.member_lives import Life, MemberLives
from tests.simulation.member_node import MemberNode
from tests.simulation.member_watch import MemberWatch
from tests.simulation.network import Network
from tests.simulation.story import Story
from tests.simulation.upgrades import Upgrades

_SLOW_MS = (10.0, 160.0)
_JUMP_MS = 20 * 60_000
_DISTANCES_MS = ((0.1, 2.0), (0.1, 2.0), (1.0, 20.0), (5.0, 60.0))
"""How far brokers may be from each other in a whole world."""
_ALONE_S = 2.5

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
        upgrades: Upgrades | None,
    ) -> None:
        """``machines`` are those of clients."""
        self._rng = rng
        self._network = network
        self._story = story
        self._nodes = nodes
        self._machines = [*machines, *(node.machine for node in nodes)]
        self._ensemble = ensemble
        self._watch = watch
        self._lives = lives = MemberLives(rng, network, story, nodes, ensemble, watch)
        hunts = Hunts(rng, network, nodes, ensemble, watch, lives)
        kinds: list[Life] = [
            lives.kill,
            lives.stop,
            lives.unregister,
            lives.pause,
            lives.cut_power,
            lives.wipe,
            lives.lose_session,
        ]
        self._upgrades = upgrades
        self._kinds: dict[Life, int] = self._drawn(*kinds)
        if any(len(node.disks) > 1 for node in nodes):
            self._kinds[lives.lose_disk] = rng.choice((2, 6, 20))
        self._troubles: dict[Trouble, int] = self._drawn(
            self._isolate,
            self._cut_link,
            self._slow_link,
            self._drop_connections,
            self._reject_connections,
            self._set_clock,
            self._lose_ensemble,
            self._cut_all_power if cuts_all_power else self._kill_all,
            self._kill_two,
        )
        hunting: tuple[Trouble, ...] = (
            hunts.hunt_leaders,
            hunts.replace_controller,
            hunts.return_twice,
            hunts.return_behind,
            self._take_for_dead,
        )
        self._troubles |= self._drawn(*hunting)
        if rng.random() < 0.6:
            # Much of one hunt.
            self._troubles[rng.choice((hunts.hunt_leaders, *hunting))] = 30
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
        """So many, in two lines at the same time, perhaps while brokers are upgraded; then all is whole."""
        lines = [self._one_by_one(count - count // 2), self._one_by_one(count // 2)]
        if self._upgrades is not None:
            lines.append(self._upgrades.roll(self._lives))
        await asyncio.gather(*lines)
        await self._lives.finish()
        self._network.heal()
        if self._upgrades is not None:
            self._upgrades.finish()
        for node in self._nodes:
            node.start()

    async def _one_by_one(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(self._rng.uniform(0.02, 0.8))
            if self._rng.random() < 0.5:
                await self._one_of(self._troubles)()
            else:
                await self._lives.live(self._rng.choice(self._nodes), self._one_of(self._kinds))

    # Of several

    async def _kill_all(self) -> None:
        nodes = [node for node in self._nodes if node.is_up and node not in self._lives.busy]
        if len(nodes) == len(self._nodes) and not self._lives.is_loss_unnoticed():
            await asyncio.gather(*(self._lives.live(node, self._lives.kill) for node in nodes))

    async def _kill_two(self) -> None:
        """So soon after each other that neither can take the place of the other."""
        nodes = [node for node in self._nodes if self._lives.is_free(node)]
        if len(nodes) > 1:
            first, second = self._rng.sample(nodes, 2)
            self._lives.begin(first, self._lives.leave)
            await asyncio.sleep(self._rng.uniform(0.0, 0.3))
            await self._lives.live(second, self._lives.leave)

    async def _cut_all_power(self) -> None:
        """At once: what is left is what was synced before it was acknowledged."""
        if self._lives.busy or not all(node.is_up for node in self._nodes) or self._lives.is_loss_unnoticed():
            return
        self._watch.lost_power()
        for node in self._nodes:
            node.cut_power()
        self._lives.busy.update(self._nodes)
        for node in self._nodes:
            await asyncio.sleep(self._rng.uniform(0.0, 0.4))
            node.start()
            if node is self._nodes[0] and self._rng.random() < 0.3:
                await self._restart_alone(node)
        self._lives.busy.clear()

    async def _restart_alone(self, node: MemberNode) -> None:
        """Stop cleanly before the others are back: no election has told what its unclean stop has cost."""
        for _ in range(round(_ALONE_S / 0.1)):
            await asyncio.sleep(0.1)
            if node.is_serving:
                await node.stop()
                node.start()
                return

    async def _lose_ensemble(self) -> None:
        if self._lives.is_loss_unnoticed():
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
            self._network.end_connections(node.process, lambda _: self._rng.random() < 0.6)

    async def _reject_connections(self) -> None:
        """Without connections nobody can tell it from a machine whose broker is dead, and it may reach the others.

        Some of its connections may be left, or all.
        """
        node = self._rng.choice(self._nodes)
        if node.is_up:
            self._story.tell("network", f"rejects who connects to {node.machine}")
            self._network.reject(node.machine)
            share = self._rng.choice((0.0, 0.5, 1.0, 1.0))
            self._network.end_connections(node.process, lambda _: self._rng.random() < share)
            await asyncio.sleep(self._rng.uniform(0.05, 1.6))
            self._story.tell("network", f"lets {node.machine} be reached again")
            self._network.accept(node.machine)

    async def _take_for_dead(self) -> None:
        """A live broker, mostly one that leads and is not the controller; others may be dead to it too."""
        leaders = [self._watch.leader_of(key) for key in self._watch.partitions]
        likely = [node for node in leaders if node is not None and not node.is_controller]
        node = self._rng.choice(likely if likely and self._rng.random() < 0.7 else self._nodes)
        await self._lives.live(node, self._lives.seem_dead)

    async def _isolate(self) -> None:
        """From all other brokers; perhaps from ZooKeeper too."""
        node = self._rng.choice(self._nodes)
        if self._rng.random() < 0.3:
            await self._lives.live(node, self._lives.part)
        else:
            await self._lives.separate(node, self._rng.uniform(0.1, 2.4))

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
