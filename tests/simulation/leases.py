"""Whoever is not registered any more acknowledges nothing alone, and nobody does in roles of a former registration.

Owns this invariant. A registration that ends with its session is bounded by the lease's own time; one that another
broker takes away, because this one seems dead or is unregistered, is gone while the session lives, and only a watch
tells. Must not change anything.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lamina.broker.member_parts import MemberParts
from lamina.broker.parts import Parts
from lamina.store.membership import BROKER_IDS
from tests.simulation.ensemble import Ensemble
from tests.simulation.judge import Judge
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.member_node import MemberNode

_LATE_S = 0.3
"""What a watch takes, and what waits for the store's thread before the broker looks there, when its disk is slow."""


class _Stale(NamedTuple):
    process: Process
    since_s: float


class Leases:
    def __init__(self, judge: Judge, nodes: Sequence[MemberNode], ensemble: Ensemble, loop: VirtualLoop) -> None:
        self._judge = judge
        self._nodes = nodes
        self._ensemble = ensemble
        self._loop = loop
        self._stale: dict[int, _Stale] = {}
        """By broker since when it could have heard that it is not registered; it holds its lease all the same."""

    def look(self) -> None:
        for node in self._nodes:
            parts = node.parts
            if parts is None or parts.member_parts is None or not parts.member_parts.lease.is_proven():
                self._stale.pop(node.id, None)
                continue
            if _has_roles_of_former_life(node, parts, parts.member_parts):
                raise self._judge.violated(f"{node.machine} may acknowledge alone in roles of a former registration")
            self._look_at_registration(node, parts.member_parts)

    def _look_at_registration(self, node: MemberNode, member_parts: MemberParts) -> None:
        entry = self._ensemble.zookeeper.entries.get(f"{BROKER_IDS}/{node.id}")
        is_registered = entry is not None and entry.created_zxid == member_parts.member.broker_epoch
        if is_registered or not self._ensemble.hears(member_parts.lease.session.held):
            self._stale.pop(node.id, None)
            return
        stale = self._stale.get(node.id)
        if stale is None or stale.process is not node.process:
            self._stale[node.id] = _Stale(node.process, self._loop.time())
        elif self._loop.time() - stale.since_s > _LATE_S:
            raise self._judge.violated(
                f"{node.machine} may acknowledge alone {_LATE_S:g} s after its registration was taken away"
            )


def _has_roles_of_former_life(node: MemberNode, parts: Parts, member_parts: MemberParts) -> bool:
    known = parts.metadata.image.brokers.get(node.id)
    is_other = known is not None and known.epoch != member_parts.member.broker_epoch
    return is_other and any(partition.leader is not None for partition in parts.partitions)
