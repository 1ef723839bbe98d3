"""The passes that are open: each goes from its plan to a cleaned log and a checkpoint, fails, or is thrown away.

Owns their order of steps (plan on the loop, links on a thread, engine, install in steps, checkpoint) and how many are
installed at the same time. A pass is known by its plan id: the result of another plan, or of an aborted one, is thrown
away. What goes wrong with a pass concerns that partition alone; it is shown and tried again later. Must not
choose logs, nor know the engine.
"""

import asyncio
import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from lamina.broker.cleaner.candidates import Choice
from lamina.broker.cleaner.history import History, Outcome, PhaseSeconds, describe
from lamina.broker.cleaner.partition_states import CleaningStates, FailedPasses, State
from lamina.broker.counters import Counters, Place
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.cleaning.failures import NotEnoughFreeSpace
from lamina.cleaning.gather import PassLimits, Taken, discard, prepare, take
from lamina.cleaning.install import Refused, installing
from lamina.clocks import Clocks
from lamina.errors import StorageError
from lamina.log.directory import LogDirectory
from lamina.log.offset_checkpoints import Checkpoints
from lamina.settings.broker import LAMINA_DISK_FREE_MIN_BYTES
from lamina.settings.cleaner import LOG_CLEANER_BACKOFF_MS
from lamina.settings.cleaner_limits import cleaner_limits
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

INSTALLS_AT_ONCE = 8
"""Installs wait for the disk, which serves several together."""
_IDLE_RETRY_MS = 3_600_000


@dataclass(slots=True)
class Pass:
    """A pass that is open. Its phases are timed by the monotonic clock."""

    partition: Partition
    directory: LogDirectory
    taken: Taken
    is_manual: bool
    began_ms: int
    began_at_ms: int
    plan: Plan
    phase: str = "gathering"
    done_bytes: int = 0
    total_bytes: int = 0
    gathered_at_ms: int | None = None
    answered_at_ms: int | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> TopicPartition:
        return self.partition.topic, self.partition.index

    def progress(self, done_bytes: int, total_bytes: int) -> None:
        """How far the engine is."""
        self.done_bytes, self.total_bytes = done_bytes, total_bytes

    def seconds(self, now_at_ms: int) -> PhaseSeconds:
        """How long each phase took so far."""
        gathered = now_at_ms if self.gathered_at_ms is None else self.gathered_at_ms
        answered = now_at_ms if self.answered_at_ms is None else self.answered_at_ms
        return PhaseSeconds(
            (gathered - self.began_at_ms) / 1000,
            max(answered - gathered, 0) / 1000,
            max(now_at_ms - answered, 0) / 1000,
        )


class Passes:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        threads: Threads,
        counters: Counters,
        settings: BrokerSettings,
        directories: LogDirectories,
        partitions: Partitions,
        states: CleaningStates,
        failed_passes: FailedPasses,
        history: History,
    ) -> None:
        self._clocks = clocks
        self._counters = counters
        self.settings = settings
        """As they are now: the cleaner is told of changes."""
        self._directories = directories
        self._partitions = partitions
        self._states = states
        self._failed_passes = failed_passes
        self._history = history
        self.checkpoints = CleanerCheckpoints(loop, directories, partitions)
        self.threads = threads.more(INSTALLS_AT_ONCE)
        """Its own: passes that wait for the disk hold up no client."""
        self._installing = asyncio.Semaphore(INSTALLS_AT_ONCE)
        self.open: dict[TopicPartition, Pass] = {}
        self.horizons: dict[TopicPartition, int | None] = {}
        """The earliest delete horizon that the last pass left; ``None`` where it left none."""
        self.is_stopping = False

    # Beginning

    async def begin(self, choice: Choice) -> Pass | None:
        """Bring a pass to the point where an engine can have it. Returns ``None`` where that failed."""
        try:
            one = self._plan(choice)
        except (ValueError, StorageError) as error:
            self.mark_failed(choice.candidate.key, str(error), is_uncleanable=isinstance(error, ValueError))
            return None
        self._states.begin(one.key)
        self.open[one.key] = one
        try:
            one.plan = await self.threads.run(partial(prepare, one.taken))
        except (NotEnoughFreeSpace, OSError) as error:
            await self._fail(one, f"it could not be begun: {error}")
            return None
        one.gathered_at_ms = self._clocks.monotonic_ms()
        one.phase = "cleaning"
        return one

    def _plan(self, choice: Choice) -> Pass:
        """Raises ``ValueError`` for a torn transaction index, or :class:`StorageError`."""
        partition, settings = choice.candidate.partition, self.settings
        limits = cleaner_limits(settings)
        now_ms = self._clocks.now_ms()
        taken = take(
            partition.log,
            partition.topic_id.bytes,
            choice.pass_range,
            PassLimits(limits.memory_bytes, limits.throttle_bytes_per_second, settings[LAMINA_DISK_FREE_MIN_BYTES]),
            plan_id=uuid4().hex,
            hash_key=secrets.token_bytes(16),
            now_ms=now_ms,
        )
        return Pass(
            partition,
            self._directories.of[choice.candidate.key],
            taken,
            choice.is_manual,
            now_ms,
            self._clocks.monotonic_ms(),
            taken.plan,
            total_bytes=taken.plan.source_bytes,
        )

    # Ending

    async def finish(self, one: Pass, answer: Answer) -> bool:
        """Install what the engine made, or note why there is nothing to install. Returns whether it was cleaned."""
        one.answered_at_ms = self._clocks.monotonic_ms()
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
            await self._put_in_place(one, manifest)
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
            self._counters.count_unexpected(Place.CLEANING)
            logger.error("%s-%d: a pass could not be installed", *one.key, exc_info=error)
            await self._fail(one, repr(error))
            return False
        self._failed_passes.clear(one.key)
        self.horizons[one.key] = self._next_horizon(one, manifest)
        await self._end(one, Outcome.CLEANED, "", manifest)
        return bool(manifest.groups)

    async def _put_in_place(self, one: Pass, manifest: Manifest) -> None:
        """Raises :class:`Refused`, ``OSError`` or :class:`StorageError`.

        A policy that changes or a topic that goes meanwhile is noticed between two groups; a truncation waits until
        this is over.
        """
        one.phase = "installing"
        read_bytes = cleaner_limits(self.settings).read_bytes
        served = self._partitions.find(*one.key)
        topic_id = b"" if served is None else served.topic_id.bytes
        for step in installing(one.partition.log, topic_id, one.taken, manifest, self._clocks.now_ms(), read_bytes):
            await self.threads.run(step)

    def _next_horizon(self, one: Pass, manifest: Manifest) -> int | None:
        """A pass for horizons alone knows only the groups that it rewrote: the others are tried again later."""
        earliest_ms = manifest.horizons.earliest_ms
        if not one.plan.only_expired:
            return earliest_ms
        retry_ms = self._clocks.now_ms() + _IDLE_RETRY_MS
        return retry_ms if earliest_ms is None else min(earliest_ms, retry_ms)

    async def _fail(self, one: Pass, reason: str, *, is_uncleanable: bool = False) -> None:
        if self._is_aborted(one):
            await self._end(one, Outcome.ABORTED, reason)
            return
        self.mark_failed(one.key, reason, is_uncleanable=is_uncleanable)
        await self._discard(one)  # First: the checkpoint may need what the pass took of a full disk.
        if not self._is_aborted(one):
            await self._checkpoint_failure(one)
        await self._end(one, Outcome.UNCLEANABLE if is_uncleanable else Outcome.FAILED, reason)

    async def _checkpoint_failure(self, one: Pass) -> None:
        """Fact 90: the log is dirty from where it was. Nothing is written where the checkpoint says so already."""
        if one.directory.offset_checkpoints.cleaner_offsets.get(one.key) != one.plan.first_dirty_offset:
            with suppress(StorageError):
                await self.checkpoints.write(one.partition, one.plan.first_dirty_offset)

    def mark_failed(self, key: TopicPartition, reason: str, *, is_uncleanable: bool) -> None:
        """A partition that is not cleaned now: it is tried again later."""
        now_ms = self._clocks.now_ms()
        failed = self._failed_passes.add(
            key,
            reason,
            is_uncleanable=is_uncleanable,
            backoff_ms=self.settings[LOG_CLEANER_BACKOFF_MS],
            now_ms=now_ms,
        )
        what = "cannot be cleaned" if is_uncleanable else "was not cleaned"
        wait_s = (failed.retry_at_ms - now_ms) / 1000
        logger.warning("%s-%d %s, tried again in %.0f s: %s", *key, what, wait_s, reason)

    async def _end(self, one: Pass, outcome: Outcome, reason: str, manifest: Manifest | None = None) -> None:
        one.over.set()
        seconds = one.seconds(self._clocks.monotonic_ms())
        await self._discard(one)
        record = self._history.add(
            one.plan,
            outcome,
            reason,
            is_manual=one.is_manual,
            began_ms=one.began_ms,
            ended_ms=self._clocks.now_ms(),
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

    async def _discard(self, one: Pass) -> None:
        try:
            await self.threads.run(partial(discard, one.taken.plan, one.taken.disk))
        except OSError:
            return  # It went with its partition; else the next start removes it.

    def _is_aborted(self, one: Pass) -> bool:
        return self.open.get(one.key) is not one or self._states.state(one.key) is State.ABORTED

    def forget(self, key: TopicPartition) -> Pass | None:
        """The partition is deleted. Returns the pass that was open."""
        self.horizons.pop(key, None)
        return self.open.pop(key, None)


class CleanerCheckpoints:
    """Writes ``cleaner-offset-checkpoint``: how far logs are clean (facts 88 and 89).

    The offsets of passes that end while a checkpoint is being written go together into the next one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, directories: LogDirectories, partitions: Partitions) -> None:
        self._loop = loop
        self._directories = directories
        self._partitions = partitions
        self._offsets: dict[str, dict[Partition, int]] = {}
        """Those that wait to be written, by the path of a log directory."""
        self._writing: dict[str, asyncio.Task[None]] = {}

    async def write(self, partition: Partition, offset: int) -> None:
        """Returns when it is on disk, or the partition is gone; raises :class:`StorageError`."""
        directory = self._directories.of.get((partition.topic, partition.index))
        if directory is None:
            return
        self._offsets.setdefault(directory.path, {})[partition] = offset
        if directory.path not in self._writing:
            self._writing[directory.path] = self._loop.create_task(self._write(directory))
        await asyncio.shield(self._writing[directory.path])

    async def _write(self, directory: LogDirectory) -> None:
        added: set[TopicPartition] = set()

        def collect() -> Checkpoints:
            # A pass that ends from now on waits for the next checkpoint.
            del self._writing[directory.path]
            offsets = {
                (partition.topic, partition.index): offset
                for partition, offset in self._offsets.pop(directory.path).items()
                if self._partitions.find(partition.topic, partition.index) is partition
            }
            added.update(offsets.keys() - directory.offset_checkpoints.cleaner_offsets.keys())
            return directory.offset_checkpoints.of_cleaner_offsets(offsets, directory.logs)

        try:
            await self._directories.checkpoint(directory, collect)
        except StorageError:
            # What is not on disk does not tell a start that a log was cleaned.
            for key in added:
                directory.offset_checkpoints.cleaner_offsets.pop(key, None)
            raise
        finally:
            # It may have failed before it came to that.
            if self._writing.get(directory.path) is asyncio.current_task():
                del self._writing[directory.path]
                del self._offsets[directory.path]
