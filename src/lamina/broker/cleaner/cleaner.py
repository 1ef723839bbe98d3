"""The cleaner: chooses logs, has them cleaned, and runs retention on compacted logs (fact 94).

Owns the round and who may be cleaned now. A round begins passes and does not wait for them: each is installed as soon
as its job has answered, and the next round begins others beside those that take long. It runs on the loop and never
holds it up: the engine works elsewhere, files are touched on threads. Without an engine nothing is cleaned, and the log
says so. Must not know how a log is cleaned.
"""

import asyncio
import logging
from collections.abc import Mapping

from lamina.broker.cleaner.candidates import (
    CandidateSearch,
    Choice,
    CleaningCandidate,
    InspectionFailed,
    filthiest_logs,
    logs_with_passed_horizons,
)
from lamina.broker.cleaner.engine import Engine
from lamina.broker.cleaner.history import History
from lamina.broker.cleaner.partition_states import CleaningStates, FailedPasses
from lamina.broker.cleaner.passes import Pass, Passes
from lamina.broker.cleaner.retention import Retention
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.clocks import Clocks
from lamina.errors import StorageError
from lamina.settings.cleaner import LAMINA_CLEANER_EXPIRE_IDLE, LOG_CLEANER_BACKOFF_MS, LOG_CLEANER_ENABLE
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

PASSES_AT_ONCE = 128
"""How many passes are open at most."""
_STOP_SECONDS = 10.0


class Cleaner(MetadataListener):
    def __init__(
        self,
        settings: BrokerSettings,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        threads: Threads,
        counters: Counters,
        directories: LogDirectories,
        partitions: Partitions,
        engine: Engine,
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._clocks = clocks
        self._counters = counters
        self._partitions = partitions
        self.engine = engine
        self.states = CleaningStates()
        self.failed_passes = FailedPasses()
        self.history = History()
        self.search = CandidateSearch(clocks, directories, partitions)
        self.retention = Retention(clocks, threads, self.search, self.states, self.failed_passes)
        self.passes = Passes(
            loop,
            clocks,
            threads,
            counters,
            settings,
            directories,
            partitions,
            self.states,
            self.failed_passes,
            self.history,
        )
        self._wanted: dict[TopicPartition, int] = {}
        """Partitions that somebody asked for, each with the number of the last request."""
        self._requests = 0
        self._has_cleaned = False
        """Since the last round: then the next one comes without a wait."""
        self._left_over: set[TopicPartition] = set()
        """Logs that the last round found beyond what it could begin."""
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None
        self._tasks = Tasks(loop)

    # Life

    def start(self) -> None:
        if not self._settings[LOG_CLEANER_ENABLE]:
            return
        missing = self.engine.missing()
        topics = {partition.topic for partition in self._partitions if partition.log.config.compact}
        if missing is not None and topics:
            logger.warning("%d compacted topics are not being compacted: %s", len(topics), missing)
        self._task = self._loop.create_task(self._run())

    async def stop(self) -> None:
        """Fact 32: before logs are closed. A pass that is being installed is finished, the others are thrown away."""
        self._is_stopping = self.passes.is_stopping = self.retention.is_stopping = True
        self._wake.set()
        await self.engine.stop()
        working = {task for task in (self._task, *self._tasks) if task is not None}
        if working:
            _, pending = await asyncio.wait(working, timeout=_STOP_SECONDS)
            if pending:
                for task in pending:
                    task.cancel()
                return  # A disk that does not answer must not hold up the end of everything else.
        self.passes.threads.close()

    @property
    def is_dead(self) -> bool:
        """Whether it should run and does not (fact 99)."""
        return self._task is not None and self._task.done() and not self._is_stopping

    # What follows from metadata

    def settings_changed(self, settings: BrokerSettings) -> None:
        """A shorter back-off holds from now on."""
        self._settings = self.passes.settings = settings
        self._wake.set()

    def partition_configured(self, partition: Partition) -> None:
        if not partition.log.config.compact:
            self.abort((partition.topic, partition.index))

    def partition_removed(self, topic: str, index: int) -> None:
        self.forget((topic, index))

    async def _run(self) -> None:
        while not self._is_stopping:
            self._wake.clear()
            try:
                await self.begin_round()
                if not self._is_stopping:
                    await self.retention.expire_compacted()
            except StorageError as error:
                logger.warning("%s", error)
            except Exception as error:
                self._count_fault("a round of the cleaner failed", error)
            if not self._is_stopping:
                await self._wait(self._settings[LOG_CLEANER_BACKOFF_MS] / 1000)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), max(seconds, 0.001))
        except TimeoutError:
            return

    # Choosing

    def why_not(self) -> str | None:
        """Why no topic is being compacted, in half a sentence."""
        if not self._settings[LOG_CLEANER_ENABLE]:
            return "log.cleaner.enable is false"
        return self.engine.missing()

    async def _find_candidates(self) -> list[CleaningCandidate]:
        """Fact 24: a log that cannot be read is uncleanable, and this round cleans nothing."""
        now_ms = self._clocks.now_ms()
        try:
            candidates = await self.search.find_candidates(
                lambda key: self.states.may_begin(key) and not self.failed_passes.is_waiting(key, now_ms)
            )
        except InspectionFailed as error:
            self.passes.mark_failed(error.key, str(error), is_uncleanable=True)
            return []
        for candidate in candidates:
            await self._write_reset(candidate)
        return candidates

    async def _write_reset(self, candidate: CleaningCandidate) -> None:
        """Facts 12 and 13: a checkpoint outside the log is written again at once."""
        if not candidate.first_dirty.is_reset or not self.search.is_served(candidate.partition):
            return
        log = candidate.partition.log
        if not (candidate.first_dirty.is_below_start and log.config.delete):
            logger.warning("%s counts as dirty from its start on: %s", log.name, candidate.first_dirty.reason)
        await self.passes.checkpoints.write(candidate.partition, candidate.first_dirty.offset)

    def _choose(
        self, candidates: list[CleaningCandidate], wanted: Mapping[TopicPartition, int], limit: int
    ) -> list[Choice]:
        chosen = filthiest_logs(candidates, wanted.keys())
        self._left_over = {choice.candidate.key for choice in chosen[limit:]}
        chosen = chosen[:limit]
        if self._settings[LAMINA_CLEANER_EXPIRE_IDLE]:
            picked = {choice.candidate.key for choice in chosen}
            idle = [candidate for candidate in candidates if candidate.key not in picked]
            horizons, now_ms = self.passes.horizons, self._clocks.now_ms()
            chosen += logs_with_passed_horizons(idle, horizons, now_ms, limit - len(chosen))
        return chosen

    # One round

    async def begin_round(self) -> list[asyncio.Task[bool]]:
        """Choose logs and begin their passes. Each pass is a task, whose result is whether anything was cleaned."""
        limit = PASSES_AT_ONCE - self.open_passes
        if limit <= 0 or self.engine.missing() is not None:
            return []
        self._has_cleaned = False
        wanted = dict(self._wanted)
        candidates = await self._find_candidates()
        begun = [
            self._tasks.begin(self._carry_out(one))
            for choice in self._choose(candidates, wanted, limit)
            if not self._is_stopping and (one := await self._begin(choice)) is not None
        ]
        for key in {candidate.key for candidate in candidates} - self._left_over:
            # A request that came since the round began may ask for more than it has seen.
            if key in wanted and self._wanted.get(key) == wanted[key]:
                del self._wanted[key]
        return begun

    async def _begin(self, choice: Choice) -> Pass | None:
        partition, key = choice.candidate.partition, choice.candidate.key
        if not self.search.is_served(partition) or not self.states.may_begin(key) or not partition.log.config.compact:
            return None
        return await self.passes.begin(choice)

    async def _carry_out(self, one: Pass) -> bool:
        is_cleaned = await self.passes.finish(one, await self._ask_engine(one))
        self.search.log_overdue()
        self._has_cleaned = self._has_cleaned or is_cleaned
        if self._has_cleaned and self.open_passes <= (PASSES_AT_ONCE // 2 if self._left_over else 0):
            self._wake.set()  # Fact 94: after a clean there is no wait.
        return is_cleaned

    async def _ask_engine(self, one: Pass) -> Answer:
        try:
            return await self.engine.clean(one.plan, one.progress)
        except Exception as error:
            self._count_fault("the engine failed", error)
            return Failure(one.plan.plan_id, f"the engine failed: {error!r}")

    def _count_fault(self, what: str, error: Exception) -> None:
        self._counters.count_unexpected(Place.CLEANING)
        logger.error("%s", what, exc_info=error)

    # Control

    def open_pass(self, key: TopicPartition) -> Pass | None:
        return self.passes.open.get(key)

    @property
    def open_passes(self) -> int:
        return len(self.passes.open)

    def is_wanted(self, key: TopicPartition) -> bool:
        return key in self._wanted

    def want(self, partition: Partition, *, roll: bool) -> CleaningCandidate:
        """Have a partition cleaned as soon as it may be, whatever its ratio; with ``roll`` all that is in it now."""
        if roll and partition.log.segments.active.size_bytes:
            partition.log.roll(self._clocks.now_ms())
        key = (partition.topic, partition.index)
        candidate = self.search.inspect(partition)
        if candidate.cleanable.cleanable_bytes:
            self._requests += 1
            self._wanted[key] = self._requests
            self.failed_passes.retry_now(key, self._clocks.now_ms())
            self._wake.set()
        return candidate

    def abort(self, key: TopicPartition) -> None:
        """Fact 29: the policy changed. The result of an open pass is not used, and its job is not waited for."""
        one = self.open_pass(key)
        if one is not None:
            self.states.abort(key)
            self.engine.cancel(one.plan.plan_id)

    async def pause(self, key: TopicPartition) -> None:
        """Facts 26 and 28: no pass from now on, because the log is about to be cut. Waits only for an install."""
        one = self.open_pass(key)
        self.states.pause(key)
        if one is not None:
            self.engine.cancel(one.plan.plan_id)
            if one.phase == "installing":
                await one.over.wait()

    def resume(self, key: TopicPartition) -> None:
        self.states.resume(key)

    def forget(self, key: TopicPartition) -> None:
        """The partition is deleted; an open pass is cancelled."""
        one = self.passes.forget(key)
        if one is not None:
            self.engine.cancel(one.plan.plan_id)
        self.states.forget(key)
        self.failed_passes.clear(key)
        self.history.forget(key)
        self._wanted.pop(key, None)
