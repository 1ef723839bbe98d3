"""What becomes of passes: they are installed and checkpointed, fail, or come to nothing.

Owns the passes that are open, and how many are installed at the same time. What goes wrong with a pass concerns that
partition alone; it is shown and tried again later. Must not choose, nor know the engine.
"""

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from lamina.broker.cleaner.checkpointing import CleanerCheckpoints
from lamina.broker.cleaner.history import History, Outcome, describe
from lamina.broker.cleaner.passes import Pass, discard_pass, gather_pass, install_pass
from lamina.broker.cleaner.states import CleaningStates, State
from lamina.broker.cleaner.troubles import Troubles
from lamina.broker.counters import Place
from lamina.broker.threads import Threads
from lamina.cleaning.answers import Answer, Failure
from lamina.cleaning.contract import Manifest
from lamina.cleaning.failures import NoRoom
from lamina.cleaning.install import Refused
from lamina.errors import StorageError
from lamina.log.checkpoints import TopicPartition
from lamina.settings.cleaner import LOG_CLEANER_BACKOFF_MS

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

INSTALLS_AT_ONCE = 8
"""They wait for the disk, which brings what several ask for in one go."""
_IDLE_LOOK_MS = 3_600_000


class Settler:
    def __init__(self, node: "Node", states: CleaningStates, troubles: Troubles, history: History) -> None:
        self._node = node
        self._states = states
        self._troubles = troubles
        self._history = history
        self.checkpoints = CleanerCheckpoints(node)
        self.threads = Threads(node.loop, INSTALLS_AT_ONCE)
        """Its own: passes that wait for the disk hold up no client."""
        self._installing = asyncio.Semaphore(INSTALLS_AT_ONCE)
        self.open: dict[TopicPartition, Pass] = {}
        self.horizons: dict[TopicPartition, int | None] = {}
        """The earliest delete horizon that the last pass left; ``None`` where it left none."""
        self.is_stopping = False

    async def begin(self, one: Pass) -> bool:
        """Bring a pass to the point where an engine can have it. Returns whether that worked."""
        self._states.begin(one.key)
        self.open[one.key] = one
        try:
            await gather_pass(self.threads, one)
        except (NoRoom, OSError) as error:
            await self._fail(one, f"it could not be begun: {error}")
            return False
        return True

    async def settle(self, one: Pass, answer: Answer) -> bool:
        """Install what the engine made, or remember why there is nothing to install. Returns whether it was cleaned."""
        one.answered_at = monotonic()
        async with self._installing:
            if self.is_stopping and isinstance(answer, Failure):
                await self._end(one, Outcome.ABORTED, "the broker stops")
            elif self._is_aborted(one):
                await self._end(one, Outcome.ABORTED, "the topic was deleted, cut, or is no longer compacted")
            elif isinstance(answer, Failure):
                await self._fail(one, answer.reason, is_uncleanable=answer.is_uncleanable)
            else:
                return await self._install(one, answer)
        return False

    async def _install(self, one: Pass, manifest: Manifest) -> bool:
        try:
            if one.key not in one.directory.remembered.cleaner_offsets:
                # Recovery takes a gap for a cleaner's only where one was at work, whatever the topic's policy is then.
                await self.checkpoints.write(one.partition, one.plan.first_dirty_offset)
            await install_pass(self._node, self.threads, one, manifest)
            if manifest.end_offset >= one.plan.first_dirty_offset and not one.plan.only_expired:
                await self.checkpoints.write(one.partition, manifest.end_offset)
        except Refused as error:
            if error.is_stale:
                await self._end(one, Outcome.ABORTED, str(error))
            else:
                await self._fail(one, str(error))
            return False
        except (StorageError, OSError) as error:
            await self._fail(one, str(error))
            return False
        except Exception as error:
            self._node.count_unexpected(Place.TIMER)
            logger.error("%s-%d: a pass could not be installed", *one.key, exc_info=error)
            await self._fail(one, repr(error))
            return False
        self._troubles.clear(one.key)
        self.horizons[one.key] = self._next_horizon(one, manifest)
        await self._end(one, Outcome.CLEANED, "", manifest)
        return bool(manifest.groups)

    def _next_horizon(self, one: Pass, manifest: Manifest) -> int | None:
        """A pass for horizons alone speaks only of the groups that it rewrote: the others are looked at again."""
        earliest_ms = manifest.horizons.earliest_ms
        if not one.plan.only_expired:
            return earliest_ms
        look_again_ms = self._node.now_ms() + _IDLE_LOOK_MS
        return look_again_ms if earliest_ms is None else min(earliest_ms, look_again_ms)

    async def _fail(self, one: Pass, reason: str, *, is_uncleanable: bool = False) -> None:
        if self._is_aborted(one):
            await self._end(one, Outcome.ABORTED, reason)
            return
        self.mark(one.key, reason, is_uncleanable=is_uncleanable)
        await discard_pass(self.threads, one)  # First: what the pass took of a full disk, the checkpoint may need.
        if not self._is_aborted(one):
            await self._checkpoint_failure(one)
        await self._end(one, Outcome.UNCLEANABLE if is_uncleanable else Outcome.FAILED, reason)

    async def _checkpoint_failure(self, one: Pass) -> None:
        """Fact 90: the log is dirty from where it was. Nothing is written where the checkpoint says so already."""
        if one.directory.remembered.cleaner_offsets.get(one.key) != one.plan.first_dirty_offset:
            with suppress(StorageError):
                await self.checkpoints.write(one.partition, one.plan.first_dirty_offset)

    def mark(self, key: TopicPartition, reason: str, *, is_uncleanable: bool) -> None:
        """A partition that is not cleaned now: it is tried again later."""
        trouble = self._troubles.add(
            key,
            reason,
            is_uncleanable=is_uncleanable,
            backoff_ms=self._node.settings[LOG_CLEANER_BACKOFF_MS],
            now_ms=self._node.now_ms(),
        )
        what = "cannot be cleaned" if is_uncleanable else "was not cleaned"
        wait_s = (trouble.retry_at_ms - self._node.now_ms()) / 1000
        logger.warning("%s-%d %s, tried again in %.0f s: %s", *key, what, wait_s, reason)

    async def _end(self, one: Pass, outcome: Outcome, reason: str, manifest: Manifest | None = None) -> None:
        one.over.set()
        seconds = one.seconds()
        await discard_pass(self.threads, one)
        record = self._history.add(
            one.plan,
            outcome,
            reason,
            is_manual=one.is_manual,
            began_ms=one.began_ms,
            ended_ms=self._node.now_ms(),
            seconds=seconds,
            manifest=manifest,
        )
        if self.open.get(one.key) is one:
            del self.open[one.key]
            self._states.finish(one.key)
        if manifest is not None:
            logger.info("%s", describe(record))
            if manifest.dropped.without_key:
                logger.warning("%s-%d: %d records without key were dropped", *one.key, manifest.dropped.without_key)

    def _is_aborted(self, one: Pass) -> bool:
        return self.open.get(one.key) is not one or self._states.state(one.key) is State.ABORTED

    def forget(self, key: TopicPartition) -> Pass | None:
        """The partition is deleted. Returns the pass that was open."""
        self.horizons.pop(key, None)
        return self.open.pop(key, None)
