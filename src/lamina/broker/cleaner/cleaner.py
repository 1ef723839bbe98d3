"""The cleaner: chooses logs, has them cleaned, installs what comes back, and trims compacted logs (fact 94).

Owns the round and who may be cleaned now. It runs on the loop and never holds it up: the engine works elsewhere, files
are touched on threads. What goes wrong with a pass concerns that partition alone; it is shown and tried again later.
Without an engine nothing is cleaned, and that is said. Must not know how a log is cleaned.
"""

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from lamina.broker.cleaner.choosing import LOGS_AT_A_TIME, Choice, choose, choose_idle
from lamina.broker.cleaner.engine import Engine, Progress
from lamina.broker.cleaner.history import History, Outcome, describe
from lamina.broker.cleaner.lookout import Lookout, Unseen
from lamina.broker.cleaner.passes import Pass, discard_pass, gather_pass, install_pass, open_pass
from lamina.broker.cleaner.sight import Sight
from lamina.broker.cleaner.states import CleaningStates, State
from lamina.broker.cleaner.trimming import Trimmer
from lamina.broker.cleaner.troubles import Troubles
from lamina.broker.metrics.counters import Place
from lamina.broker.partition import Partition
from lamina.cleaning.answers import Answer, Failure
from lamina.cleaning.contract import Manifest
from lamina.cleaning.failures import NoRoom
from lamina.cleaning.gather import PassRange
from lamina.cleaning.install import Refused
from lamina.errors import StorageError
from lamina.log.checkpoints import TopicPartition
from lamina.settings.cleaner import LAMINA_CLEANER_EXPIRE_IDLE, LOG_CLEANER_BACKOFF_MS, LOG_CLEANER_ENABLE

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

_IDLE_LOOK_MS = 3_600_000
_STOP_SECONDS = 10.0


class Cleaner:
    def __init__(self, node: "Node", engine: Engine) -> None:
        self._node = node
        self.engine = engine
        self.states = CleaningStates()
        self.troubles = Troubles()
        self.history = History()
        self.lookout = Lookout(node)
        self.trimmer = Trimmer(node, self.lookout, self.states, self.troubles)
        self._open: dict[TopicPartition, Pass] = {}
        self._wanted: set[TopicPartition] = set()
        self._horizons: dict[TopicPartition, int | None] = {}
        """The earliest delete horizon that the last pass left; ``None`` where it left none."""
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    # Life

    def start(self) -> None:
        if not self._node.settings[LOG_CLEANER_ENABLE]:
            return
        missing = self.engine.missing()
        topics = {partition.topic for partition in self._node.partitions if partition.log.config.compact}
        if missing is not None and topics:
            logger.warning("%d compacted topics are not being compacted: %s", len(topics), missing)
        self._task = self._node.loop.create_task(self._run())

    async def stop(self) -> None:
        """Fact 32: before logs are closed. A pass that is being installed is finished, others come to nothing."""
        self._is_stopping = True
        self._wake.set()
        await self.engine.stop()
        if self._task is not None:
            _, pending = await asyncio.wait({self._task}, timeout=_STOP_SECONDS)
            for task in pending:
                task.cancel()

    @property
    def is_dead(self) -> bool:
        """Whether it should run and does not (fact 99)."""
        return self._task is not None and self._task.done() and not self._is_stopping

    def configured(self) -> None:
        """Settings changed: a shorter back-off holds from now on."""
        self._wake.set()

    async def _run(self) -> None:
        while not self._is_stopping:
            self._wake.clear()
            cleaned = False
            try:
                cleaned = await self.clean_once()
                if not self._is_stopping:
                    await self.trimmer.trim()
            except StorageError as error:
                logger.warning("%s", error)
            except Exception as error:
                self._count_fault("a round of the cleaner failed", error)
            if not cleaned and not self._is_stopping:
                await self._wait(self._node.settings[LOG_CLEANER_BACKOFF_MS] / 1000)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), max(seconds, 0.001))
        except TimeoutError:
            return

    # Choosing

    def why_not(self) -> str | None:
        """Why no topic at all is being compacted, in half a sentence."""
        if not self._node.settings[LOG_CLEANER_ENABLE]:
            return "log.cleaner.enable is false"
        return self.engine.missing()

    async def _look_at_all(self) -> list[Sight]:
        """Fact 24: one that cannot be looked at is uncleanable, and this round cleans nothing."""
        now_ms = self._node.now_ms()
        try:
            sights = await self.lookout.look_at_all(
                lambda key: self.states.may_begin(key) and not self.troubles.is_waiting(key, now_ms)
            )
        except Unseen as error:
            self._mark(error.key, str(error), is_uncleanable=True)
            return []
        for sight in sights:
            await self._write_reset(sight)
        return sights

    async def _write_reset(self, sight: Sight) -> None:
        """Facts 12 and 13: a checkpoint that is no place in the log is written again at once."""
        if not sight.first_dirty.is_reset or not self.lookout.is_served(sight.partition):
            return
        log = sight.partition.log
        if not (log.config.delete and log.config.compact):
            logger.warning("%s is taken for dirty: %s", log.name, sight.first_dirty.reason)
        await self._checkpoint(sight.partition, sight.first_dirty.offset)

    def _choose(self, sights: list[Sight]) -> list[Choice]:
        chosen = choose(sights, self._wanted)
        if self._node.settings[LAMINA_CLEANER_EXPIRE_IDLE]:
            picked = {sight.key for sight, _ in chosen}
            idle = [sight for sight in sights if sight.key not in picked]
            chosen += choose_idle(idle, self._horizons, self._node.now_ms(), LOGS_AT_A_TIME - len(chosen))
        return chosen

    # One round

    async def clean_once(self) -> bool:
        """Choose, clean and install. Returns whether anything was cleaned."""
        if self.engine.missing() is not None:
            return False
        sights = await self._look_at_all()
        passes = [
            one for sight, extent in self._choose(sights) if (one := await self._begin(sight, extent)) is not None
        ]
        self._wanted -= {sight.key for sight in sights}
        if not passes or self._is_stopping:
            for one in passes:
                await self._end(one, Outcome.ABORTED, "the broker stops")
            return False
        by_plan = {one.plan.plan_id: one for one in passes}

        def progress(plan_id: str, done_bytes: int, total_bytes: int) -> None:
            if plan_id in by_plan:
                by_plan[plan_id].done_bytes, by_plan[plan_id].total_bytes = done_bytes, total_bytes

        found, reason = await self._ask_engine(passes, progress)
        settled = [
            await self._settle(one, found.get(one.plan.plan_id) or Failure(one.plan.plan_id, reason)) for one in passes
        ]
        self.lookout.tell_delays()
        return any(settled)

    async def _ask_engine(self, passes: list[Pass], progress: Progress) -> tuple[dict[str, Answer], str]:
        """The answers by plan id, and why those that are missing are."""
        try:
            answers = await self.engine.clean([one.plan for one in passes], progress)
        except Exception as error:
            self._count_fault("the engine failed", error)
            return {}, f"the engine failed: {error!r}"
        return {answer.plan_id: answer for answer in answers}, "the engine gave no answer"

    def _count_fault(self, what: str, error: Exception) -> None:
        self._node.count_unexpected(Place.TIMER)
        logger.error("%s", what, exc_info=error)

    async def _begin(self, sight: Sight, extent: PassRange) -> Pass | None:
        """Open a pass, up to the point where the engine can have it."""
        partition, key = sight.partition, sight.key
        if not self.lookout.is_served(partition) or not self.states.may_begin(key) or not partition.log.config.compact:
            return None
        try:
            one = open_pass(self._node, partition, extent, is_manual=key in self._wanted)
        except (ValueError, StorageError) as error:
            self._mark(key, str(error), is_uncleanable=isinstance(error, ValueError))
            return None
        self.states.begin(key)
        self._open[key] = one
        try:
            await gather_pass(self._node, one)
        except (NoRoom, OSError) as error:
            await self._fail(one, f"it could not be begun: {error}")
            return None
        return one

    async def _settle(self, one: Pass, answer: Answer) -> bool:
        """Install what the engine made, or remember why there is nothing to install."""
        one.answered_at = monotonic()
        if self._is_stopping and isinstance(answer, Failure):
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
            await install_pass(self._node, one, manifest)
            if manifest.end_offset >= one.plan.first_dirty_offset and not one.plan.only_expired:
                await self._checkpoint(one.partition, manifest.end_offset)
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
            self._count_fault(f"{one.plan.topic}-{one.plan.partition}: a pass could not be installed", error)
            await self._fail(one, repr(error))
            return False
        self.troubles.clear(one.key)
        self._horizons[one.key] = self._next_horizon(one, manifest)
        await self._end(one, Outcome.CLEANED, "", manifest)
        return bool(manifest.groups)

    def _next_horizon(self, one: Pass, manifest: Manifest) -> int | None:
        """A pass for horizons alone speaks only of the groups that it rewrote: the others are looked at again."""
        earliest_ms = manifest.horizons.earliest_ms
        if not one.plan.only_expired:
            return earliest_ms
        look_again_ms = self._node.now_ms() + _IDLE_LOOK_MS
        return look_again_ms if earliest_ms is None else min(earliest_ms, look_again_ms)

    # What becomes of a pass

    async def _fail(self, one: Pass, reason: str, *, is_uncleanable: bool = False) -> None:
        if self._is_aborted(one):
            await self._end(one, Outcome.ABORTED, reason)
            return
        self._mark(one.key, reason, is_uncleanable=is_uncleanable)
        await discard_pass(self._node, one)  # First of all: what the pass took of a full disk, the checkpoint may need.
        if not self._is_aborted(one):
            await self._checkpoint_failure(one)
        await self._end(one, Outcome.UNCLEANABLE if is_uncleanable else Outcome.FAILED, reason)

    async def _checkpoint_failure(self, one: Pass) -> None:
        """Fact 90: the log is dirty from where it was. Nothing is written where the checkpoint says so already."""
        if one.directory.remembered.cleaner_offsets.get(one.key) != one.plan.first_dirty_offset:
            with suppress(StorageError):
                await self._checkpoint(one.partition, one.plan.first_dirty_offset)

    def _mark(self, key: TopicPartition, reason: str, *, is_uncleanable: bool) -> None:
        trouble = self.troubles.add(
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
        await discard_pass(self._node, one)
        record = self.history.add(
            one.plan,
            outcome,
            reason,
            is_manual=one.is_manual,
            began_ms=one.began_ms,
            ended_ms=self._node.now_ms(),
            seconds=seconds,
            manifest=manifest,
        )
        if self._open.get(one.key) is one:
            del self._open[one.key]
            self.states.finish(one.key)
        if manifest is not None:
            logger.info("%s", describe(record))
            if manifest.dropped.without_key:
                logger.warning("%s: %d records without key were dropped", one.plan.topic, manifest.dropped.without_key)

    async def _checkpoint(self, partition: Partition, offset: int) -> None:
        """Facts 88 and 89."""
        key = (partition.topic, partition.index)
        directory = self._node.publisher.directory_of[key]
        await self._node.checkpoint(
            directory, lambda: directory.remembered.of_cleaner_offsets({key: offset}, directory.logs)
        )

    def _is_aborted(self, one: Pass) -> bool:
        return self._open.get(one.key) is not one or self.states.state(one.key) is State.ABORTED

    # Control

    def open_pass(self, key: TopicPartition) -> Pass | None:
        return self._open.get(key)

    @property
    def open_passes(self) -> int:
        return len(self._open)

    def is_wanted(self, key: TopicPartition) -> bool:
        return key in self._wanted

    def want(self, partition: Partition, *, roll: bool) -> Sight:
        """Have a partition cleaned as soon as it may be, whatever its ratio; with ``roll`` all that is in it now."""
        if roll and partition.log.segments.active.size_bytes:
            partition.log.roll(self._node.now_ms())
        key = (partition.topic, partition.index)
        sight = self.lookout.look(partition)
        if sight.cleanable.cleanable_bytes:
            self._wanted.add(key)
            self.troubles.retry_now(key, self._node.now_ms())
            self._wake.set()
        return sight

    def abort(self, key: TopicPartition) -> None:
        """Fact 29: the policy changed. What an open pass makes is not used; nobody waits for its job."""
        one = self._open.get(key)
        if one is not None:
            self.states.abort(key)
            self.engine.cancel(one.plan.plan_id)

    async def pause(self, key: TopicPartition) -> None:
        """Facts 26 and 28: no pass from here on, for whoever is about to cut the log. Waits for an install alone."""
        one = self._open.get(key)
        self.states.pause(key)
        if one is not None:
            self.engine.cancel(one.plan.plan_id)
            if one.phase == "installing":
                await one.over.wait()

    def resume(self, key: TopicPartition) -> None:
        self.states.resume(key)

    def forget(self, key: TopicPartition) -> None:
        """The partition is deleted; its job, if any, works for nobody."""
        one = self._open.pop(key, None)
        if one is not None:
            self.engine.cancel(one.plan.plan_id)
        self.states.forget(key)
        self.troubles.clear(key)
        self.history.forget(key)
        self._horizons.pop(key, None)
        self._wanted.discard(key)
