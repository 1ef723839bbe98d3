"""The controller's shell: what was decided is stored, then told to the brokers that follow.

Owns the one order of changes under one controller epoch, who is registered, and how far each broker has followed. What
follows from an event is decided in the pure room ``lamina.controller``. A write that failed leaves open what is stored:
the controller resigns, and the next one reads the store. Must not know how brokers reach it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lamina.broker.counters import ReplicationCounters
from lamina.broker.metadata.change_messages import encode_changes
from lamina.broker.metadata.change_stream import ChangeStream
from lamina.broker.metadata.change_telling import tell_changes
from lamina.broker.metadata.follow_messages import LONGEST_WAIT_MS, FollowRequest, FollowResponse
from lamina.broker.metadata.known_facts import KnownFacts
from lamina.broker.metadata.metadata import Change
from lamina.broker.metadata.report_changes import may_have_news, with_report
from lamina.broker.metadata.reports import Report
from lamina.broker.metadata.silent_brokers import Caller, IsRefused, SilentBrokers
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads, giving_way
from lamina.controller.brokers import (
    Arrival,
    broker_unregistered,
    brokers_gone,
    elect_waiting,
    take_over,
)
from lamina.controller.elect_leaders import balance_leaders
from lamina.controller.election import ElectionFacts
from lamina.controller.in_sync import InSyncRequests, alter_partitions
from lamina.errors import InvalidRegistration, KafkaError, NotController, PolicyViolation, StaleBrokerEpoch
from lamina.image.changes import set_partitions
from lamina.image.diff import Changes
from lamina.image.features import finalize_new, why_unsupported
from lamina.image.image import Broker, Image
from lamina.image.topic import Partition
from lamina.store.interface import StoreError, TooLarge
from lamina.store.membership import Tenure
from lamina.store.znodes import ZnodeMetadata
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_REPORTS_SECONDS = 0.25
"""How long a new controller waits for the reports of brokers that are there, before it decides without them."""
_RELEASE_SECONDS = 1.0
"""How long a broker that is unregistered may take to follow that others lead."""
_SILENT_SECONDS = 1.5 * LONGEST_WAIT_MS / 1000
"""A broker that follows asks more often."""
_AT_ONCE = 1000
"""Partitions that a decision looks at on the loop, within some five milliseconds; at more it looks on a thread."""


class Controller:
    def __init__(
        self,
        node_id: int,
        loop: asyncio.AbstractEventLoop,
        tenure: Tenure,
        image: Image,
        store: ZnodeMetadata,
        store_thread: Threads,
        unclean_wait_ms: int,
        facts: ElectionFacts,
        counters: ReplicationCounters,
        is_refused: IsRefused,
        remove_dead: Callable[[Sequence[Broker]], Awaitable[object]],
        on_resigned: Callable[[], None],
    ) -> None:
        """``image`` is what is stored; ``on_resigned`` is told once when this broker is not the controller any more.

        ``remove_dead`` takes the registrations of dead brokers away.
        """
        self.tenure = tenure
        self.stream = ChangeStream(tenure.controller_epoch, image)
        self._node_id = node_id
        self._loop = loop
        self._store = store
        self._store_thread = store_thread
        self._unclean_wait_seconds = unclean_wait_ms / 1000
        self._facts = KnownFacts(facts, store_thread)
        self._counters = counters
        self._on_resigned = on_resigned
        self._silent = SilentBrokers(is_refused, self._expected, remove_dead)
        self._has_taken_over = asyncio.Event()
        self._changing = asyncio.Lock()
        self._changes = Tasks(loop)
        self._waits = Tasks(loop)
        self._timed: frozenset[TopicPartition] = frozenset()
        """Partitions whose absent members are waited for."""
        self._registered: dict[int, Broker] = {}
        self._reports: dict[int, Report] = {}
        """The last one of each broker."""
        self._awaited: frozenset[int] = frozenset()
        """Brokers that served under the controller before: they ought to report, each in its registration then."""
        self._applied: dict[int, int] = {}
        """The version that each broker has applied."""
        self._heard_at: dict[int, float] = {}
        """When each broker asked last, by the loop's time."""
        self._has_heard = asyncio.Condition()
        """Notified when a broker has reported, has applied a version, or is gone."""

    @property
    def facts(self) -> ElectionFacts:
        """What elections must know and no image says."""
        return replace(self._facts.now, silent=self._silent.suspects)

    @property
    def is_active(self) -> bool:
        return not self.stream.is_ended

    def resign(self, reason: str) -> None:
        if self.is_active:
            logger.warning("no longer the controller of epoch %d: %s", self.tenure.controller_epoch, reason)
            self.stream.end()
            self._has_taken_over.set()
            self._silent.close()
            self._waits.cancel()
            self._on_resigned()

    def _require_active(self) -> None:
        if not self.is_active:
            raise NotController("this broker is not the controller any more")

    # Deciding

    async def change(self, change: Change) -> int:
        """Make a change, one at a time. Returns the version in which it is told. What has begun is finished.

        What comes before this controller has taken over waits: the stored image knows no brokers.
        """
        await self._has_taken_over.wait()
        return await self._change(change)

    async def _change(self, change: Change) -> int:
        return await self._changes.finish(self._change_in_turn(change))

    async def finish_changes(self) -> None:
        await self._changes.wait()

    async def _change_in_turn(self, change: Change) -> int:
        async with self._changing:
            self._require_active()
            old, new = self.stream.image, change(self.stream.image)
            if isinstance(new, Awaitable):
                new = await new
                self._require_active()
            if new.configs is not old.configs:
                # They may allow unclean elections (R46).
                new = await self._with_waiting_elected(new)
            if new is old or new == old:
                return self.stream.version
            try:
                changes, line = await self._store_thread.run(lambda: self._write(old, new))
            except TooLarge as error:
                raise PolicyViolation(f"this change is too large: {error}") from error
            except StoreError as error:
                self.resign(str(error))
                raise NotController(f"the metadata cannot be written: {error}") from error
            self._require_active()
            tell_changes(self._counters, changes)
            self.stream.append(new, line)
            self._wait_for(await self._facts.review(new, lambda: self._arriving(new)))
            return self.stream.version

    async def _with_waiting_elected(self, image: Image) -> Image:
        facts = self.facts
        elected = self._decided(lambda image: elect_waiting(image, facts), image)
        if isinstance(elected, Awaitable):
            elected = await elected
            self._require_active()
        return elected

    def _write(self, old: Image, new: Image) -> tuple[Changes, bytes]:
        """On a thread; also encodes what the other brokers are told."""
        with giving_way():
            changes = self._store.write(old, new, self.tenure)
            return changes, encode_changes(changes)

    def _arriving(self, image: Image) -> frozenset[int]:
        """Brokers that are registered and that an image does not know in this epoch."""
        known = image.brokers
        return frozenset(
            one for one, broker in self._registered.items() if one not in known or known[one].epoch != broker.epoch
        )

    # Taking over

    async def hear(self, registered: Mapping[int, Broker], ready: frozenset[int]) -> frozenset[int]:
        """Wait a moment for the reports of brokers that served under the controller before, those that are ``ready``.

        Returns those that have not reported yet.
        """
        self._note_registered(registered)
        self._awaited = ready
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPORTS_SECONDS), self._has_heard:
                await self._has_heard.wait_for(lambda: ready <= self._reports.keys() or not self.is_active)
        return ready - self._reports.keys() if self.is_active else frozenset()

    def watch_silent(self, broker_ids: frozenset[int]) -> None:
        """They have not reported: one that is dead does not while it is registered."""
        for broker_id in sorted(broker_ids):
            self._silent.watch(broker_id)

    async def begin(self, registered: Mapping[int, Broker], ready: frozenset[int]) -> None:
        """Take over from the controller before, with who is registered now. Raises NOT_CONTROLLER if it cannot."""
        self._note_registered(registered)
        there = ready | {one for one, report in self._reports.items() if report.is_ready}
        arrivals = [self._arrival(registered[one]) for one in sorted(there & registered.keys())]
        epoch, facts = self.tenure.controller_epoch, self.facts

        def taken_over(image: Image) -> Image:
            return finalize_new(take_over(image, self._node_id, epoch, arrivals, facts), registered.values())

        try:
            await self._change(partial(self._on_thread, taken_over))
        except PolicyViolation as error:
            # Else every change would wait for ever for this controller to take over.
            self.resign(f"it cannot take over from the one before: {error}")
            raise NotController(f"this broker cannot be the controller: {error}") from error
        self._has_taken_over.set()

    def _decided(self, decide: Callable[[Image], Image], image: Image) -> Image | Awaitable[Image]:
        """Take a decision that may look at every partition."""
        if sum(len(topic.partitions) for topic in image.topics.values()) <= _AT_ONCE:
            return decide(image)
        return self._on_thread(decide, image)

    async def _on_thread(self, decide: Callable[[Image], Image], image: Image) -> Image:
        """Take a decision that looks at every partition: it would hold the loop up."""

        def decided() -> Image:
            with giving_way():
                return decide(image)

        return await self._store_thread.run(decided)

    def _arrival(self, broker: Broker) -> Arrival:
        report = self._reports.get(broker.id, Report())
        is_draining = report.is_draining
        return Arrival(replace(broker, offline=report.offline - report.lost, is_draining=is_draining), report.lost)

    # Brokers come and go

    async def brokers_registered(self, registered: Mapping[int, Broker]) -> None:
        """These are registered now. One that is new joins with its first report that it is ready."""
        self._note_registered(registered)

        def without_gone(image: Image) -> Image | Awaitable[Image]:
            gone = [
                broker.id
                for broker in image.brokers.values()
                if broker.id not in registered or registered[broker.id].epoch != broker.epoch
            ]
            if not gone:
                return image
            logger.info("brokers %s have left the cluster", gone)
            facts = self.facts
            return self._on_thread(lambda image: brokers_gone(image, gone, facts), image)

        await self.change(without_gone)
        async with self._has_heard:
            self._has_heard.notify_all()

    async def release(self, broker_id: int) -> int | None:
        """Have others lead what a broker leads that is to leave for good. Returns its epoch if it is there."""

        def released(image: Image) -> Awaitable[Image]:
            facts = self.facts
            return self._on_thread(lambda image: broker_unregistered(image, broker_id, facts), image)

        version = await self.change(released)
        await self.wait_applied(version, _RELEASE_SECONDS)
        broker = self._registered.get(broker_id)
        return None if broker is None else broker.epoch

    def _note_registered(self, registered: Mapping[int, Broker]) -> None:
        """What a broker said in another registration counts no more."""
        for broker_id, broker in self._registered.items():
            if broker_id not in registered or registered[broker_id].epoch != broker.epoch:
                self._applied.pop(broker_id, None)
                self._reports.pop(broker_id, None)
                self._awaited -= {broker_id}
        self._registered = dict(registered)

    def _expected(self, broker_id: int) -> Broker | None:
        """A broker that serves, by its last word or by its registration, and so ought to follow."""
        report = self._reports.get(broker_id)
        is_expected = report.is_ready and not report.is_draining if report else broker_id in self._awaited
        return self._registered.get(broker_id) if is_expected else None

    def _wait_for(self, waiting: frozenset[TopicPartition]) -> None:
        """Partitions of which no member stopped cleanly wait for the others, but not for ever."""
        if not self.is_active:
            return
        if waiting - self._timed:
            self._waits.begin(self._stop_waiting_for(waiting - self._timed))
            self._timed |= waiting

    async def _stop_waiting_for(self, partitions: frozenset[TopicPartition]) -> None:
        await asyncio.sleep(self._unclean_wait_seconds)
        self._timed -= partitions
        self._facts.stop_waiting_for(partitions)

        def elected(image: Image) -> Image | Awaitable[Image]:
            facts = self.facts
            return self._decided(lambda image: elect_waiting(image, facts), image)

        await self.change(elected)

    async def balance_leaders(self, allowed_percentage: int) -> None:
        """Bring leaders back to their preferred replicas, where too many are elsewhere (R49)."""
        since = self._loop.time() - _SILENT_SECONDS
        silent = self.stream.image.brokers.keys() - {one for one, at in self._heard_at.items() if at >= since}

        def balanced(image: Image) -> Image:
            elected = balance_leaders(image, allowed_percentage, silent)
            if not elected:
                return image
            logger.info("%d partitions are led by their preferred replicas again", len(elected))
            return set_partitions(image, elected)

        await self.change(partial(self._on_thread, balanced))

    # Leaders ask

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, requests: InSyncRequests
    ) -> dict[tuple[bytes, int], Partition | KafkaError]:
        """Other in-sync sets, as far as they can be made. Raises STALE_BROKER_EPOCH or NOT_CONTROLLER."""
        outcomes: dict[tuple[bytes, int], Partition | KafkaError] = {}

        def altered(image: Image) -> Image:
            nonlocal outcomes
            image, outcomes = alter_partitions(image, broker_id, broker_epoch, requests, self.facts)
            return image

        await self.change(altered)
        return outcomes

    # Brokers follow

    async def follow(
        self, broker_id: int, broker_epoch: int, asked: FollowRequest, caller: Caller | None = None
    ) -> FollowResponse:
        """Take a broker's report, and tell what it has not followed yet, or what comes within its time.

        ``caller`` is the connection of a broker that asks from elsewhere.
        """
        self._require_active()
        broker = self._require_registered(broker_id, broker_epoch)
        self._check_supports(broker)
        if caller is not None:
            self._silent.heard(broker, caller)
        stream = self.stream
        is_mine = asked.controller_epoch == stream.controller_epoch
        await self._hear(broker, asked.report, asked.version if is_mine else None)
        await self._has_taken_over.wait()
        await self._take_report(broker, asked.report)
        if is_mine and asked.max_wait_ms > 0:
            await stream.wait_above(asked.version, self._loop.time() + asked.max_wait_ms / 1000)
        self._require_active()
        told = stream.since(asked.controller_epoch, asked.version)
        if stream.is_released and not told.lines:
            # Answered with nothing, it would ask again at once.
            raise NotController("the controller is about to stop")
        return FollowResponse(stream.controller_epoch, told.version, told.is_full, told.lines)

    def _require_registered(self, broker_id: int, broker_epoch: int) -> Broker:
        broker = self._registered.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            raise StaleBrokerEpoch(f"broker {broker_id} is not registered with epoch {broker_epoch}")
        return broker

    def _check_supports(self, broker: Broker) -> None:
        """Raise INVALID_REGISTRATION for a broker that could not read what is written at the finalized levels."""
        unsupported = why_unsupported(self.stream.image.features, broker.features)
        if unsupported is not None:
            raise InvalidRegistration(unsupported)

    async def _hear(self, broker: Broker, report: Report, applied: int | None) -> None:
        broker_id = broker.id

        def is_news() -> bool:
            """Told with the first report that it is ready, when its logs are open; later only less of them."""
            known = self._reports.get(broker_id)
            self._require_registered(broker_id, broker.epoch)
            return known is None or not known.is_ready

        if report.ends is not None:
            await self._facts.learn_ends(broker_id, report.ends, is_news)
        self._reports[broker_id] = report
        self._heard_at[broker_id] = self._loop.time()
        if applied is not None:
            self._applied[broker_id] = applied
        async with self._has_heard:
            self._has_heard.notify_all()

    async def wait_applied(self, version: int, seconds: float) -> None:
        """Until every live broker has applied a version, or the time is over."""
        try:
            async with asyncio.timeout(seconds), self._has_heard:
                await self._has_heard.wait_for(
                    lambda: (
                        not self.is_active
                        or all(self._applied.get(one, -1) >= version for one in self.stream.image.brokers)
                    )
                )
        except TimeoutError:
            return

    async def _take_report(self, broker: Broker, report: Report) -> None:
        if may_have_news(self.stream.image, broker, report):
            await self.change(lambda image: self._reported(image, broker, report))

    def _reported(self, image: Image, broker: Broker, report: Report) -> Image | Awaitable[Image]:
        """The image in which a report stands; the same one where there is nothing new in it."""
        registered = self._registered.get(broker.id)
        if registered is None or registered.epoch != broker.epoch:
            # It went while its report waited for its turn.
            return image
        # Levels may have been finalized meanwhile.
        self._check_supports(broker)
        arrival, facts = self._arrival(broker), self.facts
        return self._decided(lambda image: with_report(image, arrival, report, facts), image)
