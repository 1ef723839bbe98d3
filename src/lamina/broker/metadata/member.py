"""A broker as a member of a cluster: registered, following the controller, and ready to be it.

Owns this broker's registration and its lease. It looks at the store again after every change there and never counts
events; who is elected is seen by `controller_election`. Every call of the store runs on one thread of its own. Must not
know what a change means.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from lamina.broker.metadata.applied import Applied
from lamina.broker.metadata.controller import Controller
from lamina.broker.metadata.controller_election import ControllerElection, Registered
from lamina.broker.metadata.follow_messages import FollowRequest, FollowResponse
from lamina.broker.metadata.following import Following
from lamina.broker.metadata.metadata import Change
from lamina.broker.metadata.registering import register
from lamina.broker.metadata.silent_brokers import Caller
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads
from lamina.controller.election import NO_FACTS, ElectionFacts, LogEnd
from lamina.controller.in_sync import InSyncRequests
from lamina.errors import InvalidRegistration, KafkaError, NetworkError, NotController, RequestTimedOut
from lamina.image.image import Broker, Image
from lamina.image.topic import Partition
from lamina.store.interface import StoreAway, StoreError, UnsupportedLevel, WrongCluster
from lamina.store.membership import IdTaken, Membership, Removal
from lamina.store.registration import Registration
from lamina.store.session import Session
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

AskController = Callable[[int, FollowRequest], Awaitable[FollowResponse]]
"""Asks the controller's broker what ``Controller.follow`` answers, with the epoch of this broker's registration."""

_RETRY_SECONDS = 0.25
_UNREGISTER_TRIES = 8
_EVERYWHERE_SECONDS = 1.0
_RETURN_SECONDS = 1.0


class Member:
    def __init__(
        self,
        cluster: Cluster,
        loop: asyncio.AbstractEventLoop,
        store_thread: Threads,
        membership: Membership,
        session: Session,
        election: ControllerElection,
        following: Following,
        ask_controller: AskController,
        registration_of: Callable[[Broker, int | None], Registration],
        on_fatal: Callable[[str], None],
        on_unregistered: Callable[[], None],
    ) -> None:
        """``following`` asks through :meth:`ask`.

        ``registration_of`` is what this broker tells of itself, with the addresses that it has and the epoch of its
        last registration. ``on_unregistered`` is told when the cluster goes on without this broker: it is to stop.
        """
        self._cluster = cluster
        self._node_id = cluster.node_id
        self._loop = loop
        self._thread = store_thread
        self.election = election
        self._membership = membership
        self._session = session
        self._following = following
        self._ask_controller = ask_controller
        self._registration_of = registration_of
        self._on_fatal = on_fatal
        self._on_unregistered = on_unregistered
        self._is_removed = False
        self._changed = asyncio.Event()
        """Set when there may be something new in the store."""
        self._registration: Registration | None = None
        self._answered_by: Broker | None = None
        """The controller that answered this broker last: one that never did may be out of this broker's reach alone."""
        self._lease: asyncio.Task[None] | None = None
        """Begins the lease of the last registration, once the roles are those of that."""
        self._tasks = Tasks(loop)

    @property
    def controller(self) -> Controller | None:
        """While this broker is elected."""
        return self.election.controller

    @property
    def decided(self) -> Image:
        """What the controller decides from, where that is this broker; else what this broker has followed.

        It never goes back: what this broker decided in a tenure that has ended is stored, though not followed yet.
        """
        if self.controller is not None:
            return self.controller.stream.image
        ended_at, following = self.election.ended_at, self._following
        return following.decided if ended_at is None or ended_at[0] <= following.position else ended_at[1]

    @property
    def facts(self) -> ElectionFacts:
        return NO_FACTS if self.controller is None else self.controller.facts

    @property
    def broker_epoch(self) -> int:
        """Of this broker's registration."""
        return self._cluster.broker_epoch

    @property
    def is_controller(self) -> bool:
        return self.controller is not None

    # Life

    async def start(self, broker: Broker, opened: Callable[[int, int], None] | None = None) -> Applied:
        """Register, and open the logs that the controller's image names. Raises :class:`StoreError`.

        Until ``serve`` this broker leads and follows nothing, and clients are not told of it.
        """
        await self.election.check_cluster()
        await self.election.check_levels(broker.features)
        last_epoch = await self._thread.run(self._membership.last_epoch)
        self._registration = self._registration_of(broker, last_epoch)
        await self._register(self._session.negotiated_timeout_ms)
        self._membership.watch(self._store_changed)
        self._tasks.begin(self._watch())
        return await self._following.start(opened)

    async def serve(self, ends: Mapping[TopicPartition, LogEnd]) -> None:
        """Report that this broker is ready, and wait until the controller has taken it in.

        ``ends`` are those of its logs: the controller hears of them if the last stop was unclean.
        """
        assert self._registration is not None, "start comes first"
        self._following.ready(None if self._registration.is_clean else ends)
        self._tasks.begin(self._following.run())
        await self._following.wait_until(self._cluster.is_registered_in)

    async def drain(self, seconds: float) -> None:
        """Have the leaders of this broker moved away, as far as that can be within the time."""
        if not self._session.is_answered or self._is_removed:
            return  # nobody can be elected now, or others are already
        self._following.drain()
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
        self._tasks.cancel()
        await self._tasks.wait()
        await self._following.finish()
        tenure = self.election.stop()
        if not self._session.is_answered:
            logger.warning("ZooKeeper does not answer: the registration ends when its session expires")
            return
        try:
            await self._thread.run(lambda: self._membership.leave(tenure))
        except StoreError as error:
            logger.warning("the registration ends when its session expires: %s", error)

    async def make_waiting(self) -> None:
        await self._following.make_waiting()

    def tell(self) -> None:
        """There is something new to be reported: a log directory failed."""
        self._following.tell()

    # Deciding

    async def change(self, change: Change) -> Image:
        controller = self._active_controller()
        version = await controller.change(change)
        self._following.obey()
        await controller.wait_applied(version, _EVERYWHERE_SECONDS)
        return self._following.decided

    async def wait_until(self, holds: Callable[[Image], bool]) -> None:
        await self._following.wait_until(holds)

    async def balance_leaders(self, allowed_percentage: int) -> None:
        """Where this broker is the controller; what keeps it from it now passes until the next time."""
        if self.controller is not None:
            try:
                await self.controller.balance_leaders(allowed_percentage)
            except KafkaError as error:
                logger.warning("leaders are not brought back to their preferred replicas now: %s", error)

    async def unregister_broker(self, broker_id: int) -> None:
        """Take a broker out of the cluster for good (R73). One that runs finds its registration gone, and stops.

        What has begun goes on to its end: a broker that leads nothing any more is not to stay.
        """
        try:
            await self._tasks.finish(self._unregister(broker_id, self._active_controller()))
        except asyncio.CancelledError:
            asked = asyncio.current_task()
            if asked is None or asked.cancelling():
                raise
            raise NotController("this broker stops") from None

    async def _unregister(self, broker_id: int, controller: Controller) -> None:
        for _ in range(_UNREGISTER_TRIES):
            epoch = await controller.release(broker_id)
            if await self._take_registration(broker_id, epoch, controller):
                break
            # It has registered again, as its watch is about to tell.
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            raise RequestTimedOut(f"broker {broker_id} registers again and again: stop it first")

        def is_gone(image: Image) -> bool:
            broker = image.brokers.get(broker_id)
            return broker is None or broker.epoch != epoch

        with suppress(TimeoutError):
            async with asyncio.timeout(_EVERYWHERE_SECONDS):
                await self._following.wait_until(is_gone)

    async def _take_registration(self, broker_id: int, epoch: int | None, controller: Controller) -> bool:
        try:
            return await self._thread.run(lambda: self._membership.unregister(broker_id, epoch, controller.tenure))
        except StoreError as error:
            controller.resign(str(error))
            raise NotController(f"broker {broker_id} cannot be unregistered: {error}") from error

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, requests: InSyncRequests
    ) -> dict[tuple[bytes, int], Partition | KafkaError]:
        return await self._active_controller().alter_partitions(broker_id, broker_epoch, requests)

    async def follow(self, broker_id: int, broker_epoch: int, asked: FollowRequest, caller: Caller) -> FollowResponse:
        """What a broker is told that takes this one for the controller."""
        return await self._active_controller().follow(broker_id, broker_epoch, asked, caller)

    def _active_controller(self) -> Controller:
        if self.controller is None:
            raise NotController(f"broker {self._node_id} is not the controller")
        return self.controller

    async def ask(self, asked: FollowRequest) -> FollowResponse:
        """Ask the controller, wherever it is. Raises :class:`UnsupportedLevel` where it refuses this broker."""
        if self.controller is not None:
            return await self.controller.follow(self._node_id, self.broker_epoch, asked)
        controller, epoch = self.election.controller_broker, self.broker_epoch
        try:
            answer = await self._ask_controller(epoch, asked)
        except NetworkError:
            if controller is not None and controller == self._answered_by:
                self.election.suspect(controller)
            raise
        except KafkaError as error:
            # It lives, and is perhaps about to resign.
            self._answered_by = None
            if isinstance(error, InvalidRegistration):
                raise UnsupportedLevel(str(error)) from error
            raise
        self._answered_by = controller
        self.election.answered(epoch)
        return answer

    # Membership

    async def _register(self, timeout_ms: int) -> None:
        """Wait so long for another one that has the id."""
        assert self._registration is not None, "start comes first"
        registration = replace(self._registration, is_ready=self._following.is_ready)
        epoch = await register(self._membership, registration, self._thread, timeout_ms)
        self._cluster.broker_epoch = epoch
        logger.info("registered as broker %d with epoch %d", self._node_id, epoch)
        self._lease = self._tasks.begin(self._begin_lease(registration, self._membership.session_id))

    def _end_lease(self) -> None:
        """The registration is gone, and so may be the roles: whoever removed it has left the session alive."""
        self._session.hold(0)
        if self._lease is not None:
            self._lease.cancel()

    async def _begin_lease(self, registration: Registration, session_id: int) -> None:
        """The lease is that of the roles: those of a registration before may be others' by now."""
        await self._following.wait_until(self._cluster.is_registered_in)
        # The store's thread may have registered this broker in another one by now.
        self._session.hold(session_id)
        # A controller that took this broker for ready would not wait to hear of an unclean stop.
        await self._following.wait_until(lambda _: not self._following.is_stop_unanswered)
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
                # Again and again until it passes, and once in the log. An outage is told by whoever probes the session,
                # the end of a tenure by the controller.
                is_told = isinstance(error, StoreAway | NotController) or str(error) == told
                level = logging.DEBUG if is_told else logging.WARNING
                logger.log(level, "cannot read the cluster's membership, retrying: %s", error)
                told = str(error)
                if isinstance(error, StoreError):
                    self.election.resign(told)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            except Exception as error:
                logger.critical("following the membership failed", exc_info=error)
                self._on_fatal(f"following the membership failed: {error}")
                return
            await self._changed.wait()

    def look_again(self) -> None:
        """The store has changed, or who is in it."""
        self._changed.set()

    def _store_changed(self) -> None:
        """Called on a thread of the store's."""
        self._loop.call_soon_threadsafe(self.look_again)

    async def _look(self) -> None:
        registered: Registered = await self._thread.run(self._membership.brokers)
        mine = registered.get(self._node_id)
        removal = await self._thread.run(self._membership.removal) if mine is None else None
        if removal is not None:
            self._end_membership(removal)
            return
        if mine is None or mine[1] != self.broker_epoch:
            await self._register_again()
            registered = await self._await_others()
        await self.election.look(registered, self._session.negotiated_timeout_ms)

    def _end_membership(self, removal: Removal) -> None:
        """Somebody took this broker out of the cluster: it takes no part any more, until it is started again."""
        if self._is_removed:
            return
        self._is_removed = True
        self._end_lease()
        self.election.resign(removal)
        if removal is Removal.UNREGISTERED:
            logger.warning("%s: it stops", removal)
            self._on_unregistered()
        else:
            self._on_fatal(removal)

    async def _register_again(self) -> None:
        """The session is another one, or this broker was taken for dead: the others count it as gone."""
        logger.warning("the registration is gone: this broker registers again")
        self._end_lease()
        self.election.session_lost()
        await self.election.check_cluster()
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
