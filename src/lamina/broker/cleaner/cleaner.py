"""The cleaner: chooses logs, has them cleaned, and trims compacted logs (fact 94).

Owns the round and who may be cleaned now. A round begins passes and does not wait for them: each is installed as soon
as its job has answered, and the next round begins others beside those that take long. It runs on the loop and never
holds it up: the engine works elsewhere, files are touched on threads. Without an engine nothing is cleaned, and that is
said. Must not know how a log is cleaned.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from lamina.broker.cleaner.choosing import PASSES_AT_ONCE, Choice, choose, choose_idle
from lamina.broker.cleaner.engine import Engine
from lamina.broker.cleaner.history import History
from lamina.broker.cleaner.lookout import Lookout, Unseen
from lamina.broker.cleaner.passes import Pass, open_pass
from lamina.broker.cleaner.settling import Settler
from lamina.broker.cleaner.sight import Sight
from lamina.broker.cleaner.states import CleaningStates
from lamina.broker.cleaner.trimming import Trimmer
from lamina.broker.cleaner.troubles import Troubles
from lamina.broker.counters import Place
from lamina.broker.metadata.publisher import Follower
from lamina.broker.partitions.partition import Partition
from lamina.cleaning.answers import Answer, Failure
from lamina.errors import StorageError
from lamina.log.checkpoints import TopicPartition
from lamina.settings.cleaner import LAMINA_CLEANER_EXPIRE_IDLE, LOG_CLEANER_BACKOFF_MS, LOG_CLEANER_ENABLE
from lamina.settings.values import BrokerSettings

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

_STOP_SECONDS = 10.0


class Cleaner(Follower):
    def __init__(self, node: "Node", engine: Engine) -> None:
        self._node = node
        self.engine = engine
        self.states = CleaningStates()
        self.troubles = Troubles()
        self.history = History()
        self.lookout = Lookout(node)
        self.trimmer = Trimmer(node, self.lookout, self.states, self.troubles)
        self.settler = Settler(node, self.states, self.troubles, self.history)
        self._wanted: set[TopicPartition] = set()
        self._has_cleaned = False
        """Since the last look: then the next one comes without a wait."""
        self._left_over: set[TopicPartition] = set()
        """What the last round found beyond what it could begin."""
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None
        self._passes: set[asyncio.Task[bool]] = set()

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
        self._is_stopping = self.settler.is_stopping = True
        self._wake.set()
        await self.engine.stop()
        working = {task for task in (self._task, *self._passes) if task is not None}
        if working:
            _, pending = await asyncio.wait(working, timeout=_STOP_SECONDS)
            if pending:
                for task in pending:
                    task.cancel()
                return  # A disk that does not answer must not hold up the end of everything else.
        self.settler.threads.close()

    @property
    def is_dead(self) -> bool:
        """Whether it should run and does not (fact 99)."""
        return self._task is not None and self._task.done() and not self._is_stopping

    # What follows from metadata

    def settings_changed(self, _settings: BrokerSettings) -> None:
        """A shorter back-off holds from now on."""
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
                    await self.trimmer.trim()
            except StorageError as error:
                logger.warning("%s", error)
            except Exception as error:
                self._count_fault("a round of the cleaner failed", error)
            if not self._is_stopping:
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
            self.settler.mark(error.key, str(error), is_uncleanable=True)
            return []
        for sight in sights:
            await self._write_reset(sight)
        return sights

    async def _write_reset(self, sight: Sight) -> None:
        """Facts 12 and 13: a checkpoint that is no place in the log is written again at once."""
        if not sight.first_dirty.is_reset or not self.lookout.is_served(sight.partition):
            return
        log = sight.partition.log
        if not (sight.first_dirty.is_below_start and log.config.delete):
            logger.warning("%s is taken for dirty: %s", log.name, sight.first_dirty.reason)
        await self.settler.checkpoints.write(sight.partition, sight.first_dirty.offset)

    def _choose(self, sights: list[Sight], limit: int) -> list[Choice]:
        chosen = choose(sights, self._wanted)
        self._left_over = {choice.sight.key for choice in chosen[limit:]}
        chosen = chosen[:limit]
        if self._node.settings[LAMINA_CLEANER_EXPIRE_IDLE]:
            picked = {choice.sight.key for choice in chosen}
            idle = [sight for sight in sights if sight.key not in picked]
            chosen += choose_idle(idle, self.settler.horizons, self._node.now_ms(), limit - len(chosen))
        return chosen

    # One round

    async def begin_round(self) -> list[asyncio.Task[bool]]:
        """Choose, and begin passes; each is a task, which says whether anything was cleaned."""
        limit = PASSES_AT_ONCE - self.open_passes
        if limit <= 0 or self.engine.missing() is not None:
            return []
        self._has_cleaned = False
        sights = await self._look_at_all()
        begun = []
        for choice in self._choose(sights, limit):
            if not self._is_stopping and (one := await self._begin(choice)) is not None:
                begun.append(self._node.loop.create_task(self._carry_out(one)))
                self._passes.add(begun[-1])
                begun[-1].add_done_callback(self._passes.discard)
        self._wanted -= {sight.key for sight in sights} - self._left_over
        return begun

    async def _begin(self, choice: Choice) -> Pass | None:
        partition, key = choice.sight.partition, choice.sight.key
        if not self.lookout.is_served(partition) or not self.states.may_begin(key) or not partition.log.config.compact:
            return None
        try:
            one = open_pass(self._node, partition, choice.extent, is_manual=choice.is_manual)
        except (ValueError, StorageError) as error:
            self.settler.mark(key, str(error), is_uncleanable=isinstance(error, ValueError))
            return None
        return one if await self.settler.begin(one) else None

    async def _carry_out(self, one: Pass) -> bool:
        is_cleaned = await self.settler.settle(one, await self._ask_engine(one))
        self.lookout.tell_delays()
        self._has_cleaned = self._has_cleaned or is_cleaned
        if self._has_cleaned and self.open_passes <= (PASSES_AT_ONCE // 2 if self._left_over else 0):
            self._wake.set()  # Fact 94: after a clean there is no wait.
        return is_cleaned

    async def _ask_engine(self, one: Pass) -> Answer:
        try:
            return await self.engine.clean(one.plan, one.tell)
        except Exception as error:
            self._count_fault("the engine failed", error)
            return Failure(one.plan.plan_id, f"the engine failed: {error!r}")

    def _count_fault(self, what: str, error: Exception) -> None:
        self._node.count_unexpected(Place.TIMER)
        logger.error("%s", what, exc_info=error)

    # Control

    def open_pass(self, key: TopicPartition) -> Pass | None:
        return self.settler.open.get(key)

    @property
    def open_passes(self) -> int:
        return len(self.settler.open)

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
        one = self.open_pass(key)
        if one is not None:
            self.states.abort(key)
            self.engine.cancel(one.plan.plan_id)

    async def pause(self, key: TopicPartition) -> None:
        """Facts 26 and 28: no pass from here on, for whoever is about to cut the log. Waits for an install alone."""
        one = self.open_pass(key)
        self.states.pause(key)
        if one is not None:
            self.engine.cancel(one.plan.plan_id)
            if one.phase == "installing":
                await one.over.wait()

    def resume(self, key: TopicPartition) -> None:
        self.states.resume(key)

    def forget(self, key: TopicPartition) -> None:
        """The partition is deleted; its job, if any, works for nobody."""
        one = self.settler.forget(key)
        if one is not None:
            self.engine.cancel(one.plan.plan_id)
        self.states.forget(key)
        self.troubles.clear(key)
        self.history.forget(key)
        self._wanted.discard(key)
