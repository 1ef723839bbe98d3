"""A broker as a member of a cluster: registered, following the controller, and ready to be it.

Owns this broker's registration, who the controller is, and the controller's shell while this broker is elected. It
looks at the store again after every change there and never counts events. Every call of the store runs on one thread of
its own. Must not know what a change means.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lamina.broker.counters import ReplicationCounters
from lamina.broker.metadata.controller import Controller
from lamina.broker.metadata.following import Answer, Asked, Following, check_is_later
from lamina.broker.metadata.metadata import Change
from lamina.broker.metadata.publisher import Applied
from lamina.broker.metadata.registering import register
from lamina.broker.threads import Threads
from lamina.controller.election import ElectionFacts, LogEnd
from lamina.controller.in_sync import InSyncRequests
from lamina.errors import KafkaError, NotController
from lamina.image.image import Broker, Image
from lamina.image.topic import Partition
from lamina.store.interface import StoreAway, StoreError, WrongCluster
from lamina.store.member_file import MemberRecord
from lamina.store.membership import IdTaken, Membership, Tenure
from lamina.store.registration import Registration
from lamina.store.session import Session
from lamina.store.znodes import ZnodeMetadata
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

AskController = Callable[[int, Asked], Awaitable[Answer]]
"""Asks the controller's broker what ``Controller.follow`` answers, with the epoch of this broker's registration."""

Registered = Mapping[int, tuple[Registration, int]]
"""Registrations by broker id, each with its epoch."""

_RETRY_SECONDS = 0.25
_EVERYWHERE_SECONDS = 1.0
_RETURN_SECONDS = 1.0
_GHOST_TIMEOUTS = 1.5
"""The servers look for ended sessions once in a tick, which is half of the shortest session."""


class Member:
    def __init__(
        self,
        node_id: int,
        loop: asyncio.AbstractEventLoop,
        threads: Threads,
        membership: Membership,
        session: Session,
        store: ZnodeMetadata,
        following: Following,
        ask_controller: AskController,
        registration_of: Callable[[Broker], Registration],
        facts: ElectionFacts,
        unclean_wait_ms: int,
        remembered: MemberRecord,
        remember: Callable[[MemberRecord], None],
        counters: ReplicationCounters,
        on_fatal: Callable[[str], None],
    ) -> None:
        """``facts`` are those with which a controller begins. ``following`` asks through :meth:`ask`.

        ``registration_of`` is what this broker tells of itself, with the addresses that it has. What it knows of the
        cluster from before is ``remembered``; ``remember`` writes it down, and runs on a thread.
        """
        self._node_id = node_id
        self._loop = loop
        self._thread = threads.separate("store")
        self._membership = membership
        self._session = session
        self._store = store
        self._following = following
        self._ask_controller = ask_controller
        self._registration_of = registration_of
        self._facts = facts
        self._unclean_wait_ms = unclean_wait_ms
        self._remembered = remembered
        self._remember = remember
        self._counters = counters
        self._on_fatal = on_fatal
        self.controller: Controller | None = None
        """While this broker is elected."""
        self.controller_broker: Broker | None = None
        """Where the controller is; ``None`` while nobody is elected."""
        self._registration: Registration | None = None
        self._epoch = -1
        self._tenure: Tenure | None = None
        """Of an election that was won, while the metadata could not be read yet: it is tried again without another."""
        self._changed = asyncio.Event()
        self.moved = asyncio.Event()
        """Set when the controller is another one; then there is another event."""
        self._is_stopping = False
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def decided(self) -> Image:
        """What the controller decides from, where that is this broker; else what this broker has followed."""
        return self._following.decided if self.controller is None else self.controller.stream.image

    @property
    def broker_epoch(self) -> int:
        """Of this broker's registration."""
        return self._epoch

    @property
    def is_controller(self) -> bool:
        return self.controller is not None

    # Life

    async def start(self, broker: Broker, opened: Callable[[int, int], None] | None = None) -> Applied:
        """Register, and open the logs that the controller's image names. Raises :class:`StoreError`.

        Until ``serve`` this broker leads and follows nothing, and clients are not told of it.
        """
        self._registration = self._registration_of(broker)
        await self._check_cluster()
        await self._register(self._session.negotiated_timeout_ms)
        self._membership.watch(self._look_again)
        self._spawn(self._watch())
        return await self._following.start(opened)

    async def serve(self, ends: Mapping[TopicPartition, LogEnd]) -> None:
        """Report that this broker is ready, and wait until the controller has taken it in.

        ``ends`` are those of its logs: the controller hears of them if the last stop was unclean.
        """
        assert self._registration is not None, "start comes first"
        self._following.facts.is_ready = True
        self._following.facts.ends = None if self._registration.is_clean else ends
        self._spawn(self._following.run())
        await self._following.wait_until(self._is_taken_in)

    def _is_taken_in(self, image: Image) -> bool:
        mine = image.brokers.get(self._node_id)
        return mine is not None and mine.epoch == self._epoch

    async def drain(self, seconds: float) -> None:
        """Have the leaders of this broker moved away, as far as that can be within the time."""
        if not self._session.is_answered:
            return  # nobody can be elected now
        self._following.facts.is_draining = True
        self._following.tell()
        try:
            async with asyncio.timeout(seconds):
                await self._following.wait_until(self._is_drained)
        except TimeoutError:
            logger.warning("the leaders of this broker did not all move away within %.0f s", seconds)

    def _is_drained(self, image: Image) -> bool:
        """Whether this broker leads nothing that another in-sync replica could lead."""
        mine = image.brokers.get(self._node_id)
        if mine is None or not mine.is_draining:
            return False
        return not any(
            partition.leader == self._node_id and len(partition.isr) > 1
            for topic in image.topics.values()
            for partition in topic.partitions
        )

    def release_followers(self) -> None:
        """Answer the brokers that wait for changes of this one: its connections are about to close."""
        if self.controller is not None:
            self.controller.stream.release()

    async def finish_changes(self) -> None:
        if self.controller is not None:
            await self.controller.finish_changes()

    async def stop(self) -> None:
        """Leave: another controller may be elected at once, and this broker is gone for the others."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        controller = self.controller
        if controller is not None:
            controller.resign("this broker stops")
        if not self._session.is_answered:
            logger.warning("ZooKeeper does not answer: the registration ends when its session expires")
            return
        try:
            tenure = None if controller is None else controller.tenure
            await self._thread.run(lambda: self._membership.leave(tenure))
        except StoreError as error:
            logger.warning("the registration ends when its session expires: %s", error)

    async def open_waiting(self) -> None:
        await self._following.make_waiting()

    def tell(self) -> None:
        """There is something new to be reported: a log directory failed."""
        self._following.tell()

    # Deciding

    async def change(self, change: Change) -> Image:
        controller = self._office()
        version = await controller.change(change)
        await controller.wait_applied(version, _EVERYWHERE_SECONDS)
        return self._following.decided

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, requests: InSyncRequests
    ) -> dict[tuple[bytes, int], Partition | KafkaError]:
        return await self._office().alter_partitions(broker_id, broker_epoch, requests)

    async def follow(self, broker_id: int, broker_epoch: int, asked: Asked) -> Answer:
        """What a broker is told that takes this one for the controller."""
        return await self._office().follow(broker_id, broker_epoch, asked)

    def _office(self) -> Controller:
        if self.controller is None:
            raise NotController(f"broker {self._node_id} is not the controller")
        return self.controller

    async def ask(self, asked: Asked) -> Answer:
        """Ask the controller, wherever it is."""
        if self.controller is not None:
            return await self.controller.follow(self._node_id, self._epoch, asked)
        return await self._ask_controller(self._epoch, asked)

    # Membership

    async def _register(self, timeout_ms: int) -> None:
        """Wait so long for another one that has the id."""
        assert self._registration is not None, "start comes first"
        facts = self._following.facts
        # One that serves has nothing to tell that a controller has to wait for.
        registration = replace(self._registration, is_ready=facts.is_ready and facts.ends is None)
        self._epoch = await register(self._membership, registration, self._thread, timeout_ms)
        self._following.registered(self._epoch)
        logger.info("registered as broker %d with epoch %d", self._node_id, self._epoch)
        self._spawn(self._begin_lease(registration, self._epoch))

    async def _begin_lease(self, registration: Registration, epoch: int) -> None:
        """The lease is that of the roles: those from before a lost session may be others' by now."""
        await self._following.wait_until(self._is_taken_in)
        if epoch != self._epoch:
            return
        self._session.hold(self._membership.session_id)
        # A controller that took this broker for ready would not wait to hear of an unclean stop.
        await self._following.wait_until(lambda _: self._following.facts.ends is None)
        try:
            await self._thread.run(lambda: self._membership.mark_ready(registration))
        except StoreError as error:
            logger.warning("the next controller has to wait for this broker's report: %s", error)

    async def _watch(self) -> None:
        """Look at the store after each change of it, and again after a failure."""
        told = ""
        while True:
            self._changed.clear()
            try:
                await self._look()
                told = ""
            except (IdTaken, WrongCluster) as error:
                self._on_fatal(str(error))
                return
            except (StoreError, KafkaError) as error:
                # Again and again until it passes, and once in the log. An outage is told by whoever probes the session.
                level = logging.DEBUG if isinstance(error, StoreAway) or str(error) == told else logging.WARNING
                logger.log(level, "cannot read the cluster's membership, retrying: %s", error)
                told = str(error)
                if isinstance(error, StoreError):
                    self._resign(told)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            except Exception as error:
                logger.critical("following the membership failed", exc_info=error)
                self._on_fatal(f"following the membership failed: {error}")
                return
            await self._changed.wait()

    def _look_again(self) -> None:
        """The store has changed. Called on a thread of the store's."""
        self._loop.call_soon_threadsafe(self._changed.set)

    async def _look(self) -> None:
        registered: Registered = await self._thread.run(self._membership.brokers)
        mine = registered.get(self._node_id)
        if mine is None or mine[1] != self._epoch:
            await self._register_again()
            registered = await self._await_others()
        elected = await self._thread.run(self._membership.controller)
        if elected is None or (elected[0] == self._node_id and self.controller is None):
            # What an earlier tenure left keeps everybody else out of the office.
            await self._campaign(registered, elected)
            registered = await self._thread.run(self._membership.brokers)
            elected = await self._thread.run(self._membership.controller)
        if elected is not None and elected[1] > self._remembered.controller_epoch:
            await self._remember_epoch(elected[1])
        brokers = _brokers(registered)
        self._set_controller(None if elected is None else brokers.get(elected[0]))
        controller = self.controller
        if controller is not None and (elected is None or elected[1] != controller.tenure.controller_epoch):
            self._resign("another controller was elected")
        elif controller is not None:
            await controller.brokers_registered(brokers)

    def _set_controller(self, broker: Broker | None) -> None:
        if broker != self.controller_broker:
            self.controller_broker = broker
            if broker is not None:
                self._following.retry_now()
            self.moved.set()
            self.moved = asyncio.Event()

    async def _register_again(self) -> None:
        """The session is another one: what was ephemeral is gone, and the others count this broker as gone."""
        logger.warning("the session was lost: this broker registers again")
        self._session.hold(0)
        self._resign("its session was lost")
        self._tenure = None
        await self._check_cluster()
        # Another one that has the id now has it for good: it has waited for this session to end.
        await self._register(timeout_ms=0)
        self._following.tell()

    async def _await_others(self) -> Registered:
        """Who is registered, once those are back that this broker knew, or a moment has passed.

        Their sessions have often ended with this one's, and whoever is elected first would take them for dead.
        """
        known = self._following.decided.brokers.keys()
        deadline = self._loop.time() + _RETURN_SECONDS
        while True:
            self._changed.clear()
            registered = await self._thread.run(self._membership.brokers)
            elected = await self._thread.run(self._membership.controller)
            if elected is not None or known <= registered.keys() or self._loop.time() >= deadline:
                return registered
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()

    async def _remember_epoch(self, controller_epoch: int) -> None:
        """It tells an older ensemble at the next start. A disk that is full keeps nobody from serving."""
        remembered = replace(self._remembered, controller_epoch=controller_epoch)
        try:
            await self._thread.run(lambda: self._remember(remembered))
        except OSError as error:
            logger.warning("controller epoch %d cannot be remembered: %s", controller_epoch, error.strerror)
            return
        self._remembered = remembered

    async def _check_cluster(self) -> None:
        """Raise :class:`WrongCluster` in an ensemble that was wiped, or restored from an old copy."""
        known = self._remembered
        await self._thread.run(lambda: self._membership.check_cluster(known.cluster_id, known.controller_epoch))

    # Being the controller

    async def _campaign(self, registered: Registered, elected: tuple[int, int] | None) -> None:
        tenure = self._tenure
        if tenure is None or elected != (self._node_id, tenure.controller_epoch):
            await self._check_cluster()
            tenure = self._tenure = await self._thread.run(self._membership.elect)
            if tenure is None:
                return
            logger.info("elected controller with epoch %d", tenure.controller_epoch)
        stored = await self._thread.run(self._store.load)
        check_is_later(self._following.decided, stored)
        self._tenure = None
        self.controller = controller = Controller(
            self._node_id,
            self._loop,
            tenure,
            stored,
            self._store,
            self._thread,
            self._unclean_wait_ms,
            self._facts,
            self._counters,
            self._resigned,
        )
        self._set_controller(_brokers(registered).get(self._node_id))
        registered = await self._hear(controller, registered)
        await controller.begin(_brokers(registered), _ready(registered))

    async def _hear(self, controller: Controller, registered: Registered) -> Registered:
        """Wait until all have reported that served under the controller before. Returns who is registered then.

        One that is dead does not report while its session lasts, and may have lost what it would be elected for.
        """
        deadline = self._loop.time() + self._session.negotiated_timeout_ms * _GHOST_TIMEOUTS / 1000
        silent = await controller.hear(_brokers(registered), _ready(registered))
        while silent and self._loop.time() < deadline:
            registered = await self._thread.run(self._membership.brokers)
            silent = await controller.hear(_brokers(registered), _ready(registered))
        if silent:
            logger.warning("brokers %s are registered and do not report", sorted(silent))
        return await self._thread.run(self._membership.brokers)

    def _resign(self, reason: str) -> None:
        if self.controller is not None:
            self.controller.resign(reason)

    def _resigned(self) -> None:
        """Give the office back, so that another may be elected, and look who is."""
        controller, self.controller = self.controller, None
        self._set_controller(None)
        if controller is not None and not self._is_stopping:
            self._spawn(self._give_up(controller))

    async def _give_up(self, controller: Controller) -> None:
        try:
            await self._thread.run(lambda: self._membership.resign(controller.tenure))
        except StoreError as error:
            logger.debug("the controller's office ends with its session: %s", error)
        self._changed.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)


def _brokers(registered: Registered) -> dict[int, Broker]:
    return {one: registration.broker(one, epoch) for one, (registration, epoch) in registered.items()}


def _ready(registered: Registered) -> frozenset[int]:
    return frozenset(one for one, (registration, _) in registered.items() if registration.is_ready)
