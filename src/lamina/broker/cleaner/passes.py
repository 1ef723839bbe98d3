"""One pass over one partition, from the plan to the checkpoint.

Owns the order: taken on the loop, linked on a thread, done by the engine, installed in steps, checkpointed. A pass is
known by its plan id: what another plan made, or one that was aborted meanwhile, is thrown away. Must not choose.
"""

import asyncio
import secrets
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

from lamina.broker.cleaner.history import PhaseSeconds
from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.gather import PassLimits, PassRange, Taken, discard, prepare, take
from lamina.cleaning.install import installing
from lamina.log.directory import LogDirectory
from lamina.settings.broker import LAMINA_DISK_FREE_MIN_BYTES
from lamina.settings.cleaner_limits import cleaner_limits

if TYPE_CHECKING:
    from lamina.broker.node import Node


@dataclass(slots=True)
class Pass:
    """A pass that is open."""

    partition: Partition
    directory: LogDirectory
    taken: Taken
    is_manual: bool
    began_ms: int
    plan: Plan
    phase: str = "gathering"
    done_bytes: int = 0
    total_bytes: int = 0
    began_at: float = field(default_factory=monotonic)
    gathered_at: float = 0.0
    answered_at: float = 0.0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> tuple[str, int]:
        return self.partition.topic, self.partition.index

    def tell(self, done_bytes: int, total_bytes: int) -> None:
        """How far the engine is."""
        self.done_bytes, self.total_bytes = done_bytes, total_bytes

    def seconds(self) -> PhaseSeconds:
        """Up to now."""
        now = monotonic()
        gathered = self.gathered_at or now
        answered = self.answered_at or now
        return PhaseSeconds(gathered - self.began_at, max(answered - gathered, 0.0), max(now - answered, 0.0))


def open_pass(node: "Node", partition: Partition, extent: PassRange, *, is_manual: bool) -> Pass:
    """Take the plan. Raises ``ValueError`` for a torn transaction index, or :class:`StorageError`."""
    limits = cleaner_limits(node.settings)
    now_ms = node.now_ms()
    taken = take(
        partition.log,
        partition.topic_id.bytes,
        extent,
        PassLimits(limits.memory_bytes, limits.throttle_bytes_per_second, node.settings[LAMINA_DISK_FREE_MIN_BYTES]),
        plan_id=uuid4().hex,
        hash_key=secrets.token_bytes(16),
        now_ms=now_ms,
    )
    directory = node.directories.of[partition.topic, partition.index]
    return Pass(partition, directory, taken, is_manual, now_ms, taken.plan, total_bytes=taken.plan.source_bytes)


async def gather_pass(threads: Threads, one: Pass) -> None:
    """Make the pass folder. Raises :class:`NoRoom` or ``OSError``."""
    one.plan = await threads.run(partial(prepare, one.taken))
    one.gathered_at = monotonic()
    one.phase = "cleaning"


async def install_pass(node: "Node", threads: Threads, one: Pass, manifest: Manifest) -> None:
    """Put the result in place. Raises :class:`Refused`, ``OSError`` or :class:`StorageError`.

    A policy that changes or a topic that goes meanwhile is noticed between two groups; whoever cuts the log waits until
    this is over.
    """
    one.phase = "installing"
    read_bytes = cleaner_limits(node.settings).read_bytes
    served = node.partitions.find(*one.key)
    topic_id = b"" if served is None else served.topic_id.bytes
    for step in installing(one.partition.log, topic_id, one.taken, manifest, node.now_ms(), read_bytes):
        await threads.run(step)


async def discard_pass(threads: Threads, one: Pass) -> None:
    try:
        await threads.run(partial(discard, one.taken.plan, one.taken.disk))
    except OSError:
        return  # It went with its partition; else the next start removes it.
