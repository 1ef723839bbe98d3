"""Rolling upgrades of a simulated cluster, and the way back, in the middle of everything else that happens to it.

Owns the two versions, which differ in one level, and that no broker follows a level that it does not support. A broker
whose version is refused is started again and again, as a service would be, until it is upgraded. Must not know other
faults.
"""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from lamina.image.features import LAMINA_VERSION, SUPPORTED, why_unsupported
from tests.simulation.judge import Judge
from tests.simulation.member_lives import MemberLives
from tests.simulation.member_node import MemberNode

OLDER = SUPPORTED
NEWEST_LEVEL = SUPPORTED[LAMINA_VERSION][-1] + 1
_GOES_BACK = 0.2
NEWER = {**SUPPORTED, LAMINA_VERSION: range(SUPPORTED[LAMINA_VERSION][0], NEWEST_LEVEL + 1)}


class Upgrades:
    def __init__(self, rng: Random, nodes: Sequence[MemberNode], judge: Judge) -> None:
        self._rng = rng
        self._nodes = nodes
        self._judge = judge

    def look(self) -> None:
        for node in self._nodes:
            if node.parts is None or node.parts.member_parts is None:
                continue
            unsupported = why_unsupported(node.parts.member_parts.following.decided.features, node.running)
            if unsupported is not None:
                raise self._judge.violated(f"{node.machine} follows what it cannot read: {unsupported}")

    async def roll(self, lives: MemberLives) -> None:
        """One broker after the other. Now and then one goes back; where the newer level is finalized it is refused."""
        for node in self._rng.sample(self._nodes, len(self._nodes)):
            await asyncio.sleep(self._rng.uniform(0.02, 0.6))
            await lives.live(node, self._upgrade)
            if self._rng.random() < _GOES_BACK:
                await lives.live(self._rng.choice(self._nodes), self._go_back)
        await asyncio.sleep(self._rng.uniform(0.0, 1.5))
        await lives.live(self._rng.choice(self._nodes), self._go_back)

    # Lives of one broker

    async def _upgrade(self, node: MemberNode) -> None:
        await self._restart(node, NEWER)

    async def _go_back(self, node: MemberNode) -> None:
        await self._restart(node, OLDER)

    async def _restart(self, node: MemberNode, features: Mapping[str, range]) -> None:
        if node.features is features:
            return
        node.install(features)
        if node.is_serving and self._rng.random() < 0.7:
            await node.stop()
        else:
            node.kill()
        node.start()

    # In the end

    def finish(self) -> None:
        """All of them have the newer version; nothing else goes wrong any more."""
        for node in self._nodes:
            if node.features is OLDER:
                node.install(NEWER)
                if node.is_up:
                    node.kill()
                node.start()

    def check(self) -> None:
        for node in self._nodes:
            assert node.parts is not None
            level = node.parts.metadata.image.features.levels.get(LAMINA_VERSION)
            if level != NEWEST_LEVEL:
                raise self._judge.violated(f"{node.machine} goes by level {level}, and {NEWEST_LEVEL} was finalized")
