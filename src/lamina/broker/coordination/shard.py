"""One machine that lives in a partition of an internal topic, with its log, its timers and who waits for it.

Owns the one turn of every decision: decide, append, replay and carry out, with no await in between; only answers wait
until the records are committed: below the high watermark. A shard belongs to one term of its partition's leader: it
takes the machine into service once all that it found in the log is committed, and goes when another broker may have
led. What the machine does not keep in the log changes after the append, so that records which the log refuses leave
nothing behind. A machine whose log could not be written, or that failed, is thrown away: all who wait are answered, and
it is loaded again from its log, later each time. Must not know what any machine decides.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lamina.broker.coordination.commit_deadlines import CommitDeadlines
from lamina.broker.coordination.pending import Pending, Response
from lamina.broker.coordination.reload_backoff import ReloadBackoff
from lamina.broker.coordination.shard_log import ShardLog
from lamina.broker.coordination.shard_timers import ShardTimers
from lamina.broker.counters import Counters, Place
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.clocks import Clocks
from lamina.coordinators.decision import CancelTimer, Decision, Effect, Now, Reply, SetTimer, TimerName, Waiter
from lamina.coordinators.replaying import Machine, replay
from lamina.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTransactionState,
    KafkaError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    StorageError,
    UnknownServerError,
)
from lamina.log.producer_states import VerificationGuard

logger = logging.getLogger(__name__)

R = TypeVar("R")
M = TypeVar("M", bound=Machine[Any])
T = TypeVar("T")

_STEPS_AT_A_TIME = 500
_TIMER_RETRY_MS = 10_000


class DecisionTooLarge(UnknownServerError):
    """The log refused the records of a decision; the machine is as it was before."""


class Shard(Generic[R, M]):
    def __init__(
        self,
        log: ShardLog[R],
        make: Callable[[Partition], M],
        perform: "Perform[R, M]",
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        counters: Counters,
        partitions: Partitions,
        commit_timeout_ms: int,
    ) -> None:
        self.log = log
        self._make = make
        self._perform = perform
        self._loop = loop
        self._clocks = clocks
        self._counters = counters
        self._partitions = partitions
        self.machine: M | None = None
        """``None`` while it is being loaded."""
        self._timers = ShardTimers(loop, clocks.monotonic_ms, self._timer_due)
        self._pending = Pending(clocks)
        self._deadlines = CommitDeadlines(loop, clocks.monotonic_ms, commit_timeout_ms, self._commit_overdue)
        self._loading: asyncio.Task[None] | None = None
        self._reloads = ReloadBackoff()
        self._once_loaded: list[Callable[[M, Now], Decision[R]]] = []

    # Life

    def load(self, delay_ms: int = 0) -> None:
        """Begin to load."""
        self._let_go(CoordinatorLoadInProgress(f"{self.log.name} is being loaded"))
        self._loading = self._loop.create_task(self._load(delay_ms))

    def _load_again(self) -> None:
        """The machine failed. One that fails again and again gets ever more time."""
        self.load(self._reloads.next_delay_ms(self._clocks.monotonic_ms()))

    def _give_up_or_load_again(self, error: KafkaError) -> None:
        """Nobody coordinates in a log that is offline or led elsewhere. Other trouble goes by."""
        if isinstance(error, NotLeaderOrFollower) or self.log.partition.log.failure is not None:
            self.close()
        else:
            self._load_again()

    def close(self) -> None:
        """This broker does not run it any more."""
        self._let_go(NotCoordinator(f"{self.log.name} is not led here"))

    @property
    def is_given_up(self) -> bool:
        """Neither runs nor loads: its log cannot be used."""
        return self.machine is None and self._loading is None

    def _let_go(self, reason: KafkaError) -> None:
        self.machine = None
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        self._timers.cancel_all()
        self._deadlines.cancel_all()
        self._pending.refuse_all(reason)

    async def _load(self, delay_ms: int) -> None:
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        log, began_ms = self.log, self._clocks.monotonic_ms()
        try:
            machine, next_offset = self._make(log.partition), log.start_offset
            # Markers come while it loads. Nothing is awaited between the end of the log and the machine's first turn.
            while next_offset < log.end_offset or not log.is_taken_over:
                if next_offset == log.end_offset:
                    await self._wait_for_commit()
                    continue
                history = await log.read_from(next_offset)
                steps, next_offset = history.steps(), history.next_offset
                while replay(machine, steps, log.format.decode, _STEPS_AT_A_TIME):
                    await asyncio.sleep(0)
            decision = machine.loaded(self._now())
        except (StorageError, NotLeaderOrFollower, NotEnoughReplicasAfterAppend) as error:
            # That a leader is replaced before it has loaded is no trouble.
            level = logging.DEBUG if isinstance(error, NotLeaderOrFollower) else logging.ERROR
            logger.log(level, "%s cannot be loaded: %s", log.name, error)
            self._loading = None
            self._give_up_or_load_again(error)
            return
        except Exception as error:
            # The log cannot be read: no coordinator is better than one that has lost state.
            self._partitions.failed(log.partition.topic, log.partition.index, error)
            self._loading = None
            return
        self.machine = machine
        self._loading = None
        self.run(lambda _: decision)
        once_loaded, self._once_loaded = self._once_loaded, []
        for decide in once_loaded:
            self.run_once_loaded(decide)
        took_ms = self._clocks.monotonic_ms() - began_ms
        self._counters.coordinator_loads.observe(took_ms * 1_000_000)
        logger.debug("%s loaded in %d ms", log.name, took_ms)

    async def _wait_for_commit(self) -> None:
        error = await self.log.committed()
        if error is not None:
            raise error

    @property
    def is_loading(self) -> bool:
        return self._loading is not None

    # Deciding

    def look(self, look: Callable[[M], T]) -> T:
        """Something to be read off the machine as it is now. It may be lost yet: clients are told by :meth:`read`."""
        return look(self._require())

    def read(self, look: Callable[[M], object]) -> Response:
        """Something to be read off the machine, with nothing decided; told once all that it saw is committed."""
        machine = self._require()
        answer = look(machine)
        waiter, response = self._pending.begin()
        if self.log.is_committed:
            self._pending.answer([Reply(waiter, answer)])
        else:
            self._when_committed(machine, [Reply(waiter, answer)], [])
        return response

    async def committed(self) -> None:
        """Wait until all that can be seen now is committed."""
        if not self.log.is_committed:
            await self.read(lambda _: None)

    def ask(
        self, decide: Callable[[M, Waiter, Now], Decision[R]], verification: VerificationGuard | None = None
    ) -> Response:
        """Raises what forbids that anything is decided.

        ``verification`` lets records on behalf of a producer begin its transaction in this log.
        """
        machine = self._require()
        waiter, response = self._pending.begin()
        try:
            self._turn(machine, lambda now: decide(machine, waiter, now), verification)
        except BaseException:
            self._pending.withdraw(waiter)
            raise
        return response

    def run(self, decide: Callable[[Now], Decision[R]]) -> bool:
        """A decision without a waiting request. Returns whether it was carried out."""
        machine = self.machine
        if machine is None:
            return False
        try:
            self._turn(machine, decide)
        except (CoordinatorNotAvailable, NotCoordinator) as error:
            # Too few replicas are in sync, or another broker leads: that passes, and nobody has to do anything.
            logger.warning("%s: %s", self.log.name, error)
            return False
        except KafkaError as error:
            logger.error("%s: %s", self.log.name, error)
            return False
        except Exception as error:
            self._counters.count_unexpected(Place.COORDINATOR)
            logger.error("%s failed and is loaded again", self.log.name, exc_info=error)
            return False
        return True

    def run_once_loaded(self, decide: Callable[[M, Now], Decision[R]]) -> None:
        """A decision without a waiting request, which is put off while the machine is being loaded."""
        machine = self.machine
        if machine is not None:
            self.run(lambda now: decide(machine, now))
        elif self.is_loading:
            self._once_loaded.append(decide)

    def _require(self) -> M:
        if self.machine is None:
            if self.is_given_up:
                raise NotCoordinator(f"{self.log.name} is not led here")
            raise CoordinatorLoadInProgress(f"{self.log.name} is being loaded")
        return self.machine

    def _now(self) -> Now:
        return Now(self._clocks.now_ms(), self._clocks.monotonic_ms())

    def _turn(
        self, machine: M, decide: Callable[[Now], Decision[R]], verification: VerificationGuard | None = None
    ) -> None:
        """Decide and carry out. After any failure but a refusal, the soft state cannot be trusted."""
        try:
            decision = decide(self._now())
        except KafkaError:
            raise
        except Exception:
            self._load_again()
            raise
        try:
            self._carry_out_or_replace(machine, decision, verification)
        except (StorageError, NotLeaderOrFollower) as error:
            self._give_up_or_load_again(error)
            raise NotCoordinator(f"{self.log.name} cannot be written: {error}") from error
        except NotEnoughReplicas as error:
            if not decision.is_refusable:
                self._load_again()
            raise CoordinatorNotAvailable(str(error)) from error
        except MessageTooLarge as error:
            if decision.is_refusable:
                raise DecisionTooLarge(str(error)) from error
            self._load_again()
            raise UnknownServerError(str(error)) from error
        except (InvalidProducerEpoch, InvalidTransactionState):
            # The log takes nothing of this producer's now; nothing was written, and no machine keeps soft state of it.
            raise
        except Exception:
            self._load_again()
            raise

    def _carry_out_or_replace(self, machine: M, decision: Decision[R], verification: VerificationGuard | None) -> None:
        try:
            self._carry_out(machine, decision, verification)
        except MessageTooLarge as error:
            if decision.if_too_large is None:
                raise
            logger.warning("%s", error)
            self._carry_out(machine, decision.if_too_large())

    def _carry_out(self, machine: M, decision: Decision[R], verification: VerificationGuard | None = None) -> None:
        records = decision.records
        if records:
            now_ms = self._clocks.now_ms()
            self.log.append(records, decision.producer, now_ms, verification, is_atomic=decision.is_atomic)
            for record in records:
                machine.replay(record, decision.producer)
        for change in decision.soft_changes:
            change()
        replies: list[Reply] = []
        others: list[Effect] = []
        for effect in decision.effects:
            if isinstance(effect, Reply):
                replies.append(effect)
            elif isinstance(effect, SetTimer):
                self._timers.set(effect.name, effect.at_monotonic_ms)
            elif isinstance(effect, CancelTimer):
                self._timers.cancel(effect.name)
            else:
                others.append(effect)
        if replies or others:
            self._when_committed(machine, replies, others)

    # What waits for the commit

    def _when_committed(self, machine: M, replies: list[Reply], others: list[Effect]) -> None:
        """Also an answer that was only looked up waits: it tells of what others have written."""
        is_told = False

        def committed(error: KafkaError | None) -> None:
            nonlocal is_told
            is_told = True
            self._deadlines.end(replies)
            if isinstance(error, NotEnoughReplicasAfterAppend):
                # The high watermark is past it; only the promise of so many copies is not kept.
                self._finish(machine, [Reply(one.waiter, _not_available(error)) for one in replies], others)
            elif error is None:
                self._finish(machine, replies, others)
            elif self.machine is machine:  # Once for all who waited: whoever comes later finds another machine.
                self._give_up_or_load_again(error)

        forget = self.log.when_committed(committed)
        if replies and not is_told:
            # What else is to be done is to be done however late the commit comes.
            self._deadlines.begin(replies, _keep if others else forget)

    def _commit_overdue(self, replies: list[Reply]) -> None:
        """What was decided stands, and may be committed yet: whoever asks again finds it."""
        error = _not_available(f"{self.log.name} has not committed it in time")
        self._pending.answer([Reply(one.waiter, error) for one in replies])

    def _finish(self, machine: M, replies: list[Reply], others: list[Effect]) -> None:
        self._pending.answer(replies)
        for effect in others:
            # The machine was loaded again meanwhile: it has other effects, those that follow from its log.
            if self.machine is not machine:
                return
            try:
                self._perform(self, effect)
            except Exception as error:
                self._counters.count_unexpected(Place.COORDINATOR)
                logger.error("%s failed and is loaded again", self.log.name, exc_info=error)
                self._load_again()

    def _timer_due(self, name: TimerName) -> None:
        machine = self.machine
        if machine is None:
            return
        is_carried_out = self.run(lambda now: machine.on_timer(name, now))
        if not is_carried_out and self.machine is machine:
            self._timers.set(name, self._clocks.monotonic_ms() + _TIMER_RETRY_MS)


def _keep() -> None:
    """Nothing is forgotten."""


def _not_available(reason: object) -> CoordinatorNotAvailable:
    return CoordinatorNotAvailable(str(reason))


Perform = Callable[[Shard[R, M], Effect], None]
"""Carries out an effect that is neither an answer nor a timer."""
