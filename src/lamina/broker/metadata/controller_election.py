"""Who the controller is, and this broker's part in it: candidate, controller, follower of another.

Owns the controller's shell while this broker is elected, and what it remembers of elections, by which it knows an
ensemble that was wiped or restored. Every call of the store runs on the thread that is given. Must not register this
broker, nor know what a change means.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lamina.broker.counters import ReplicationCounters
from lamina.broker.metadata.controller import Controller
from lamina.broker.metadata.following import Following, check_is_later
from lamina.broker.metadata.silent_brokers import IsRefused, is_dead
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads
from lamina.controller.election import ElectionFacts
from lamina.image.features import why_unsupported
from lamina.image.image import Broker, Features, Image
from lamina.store.interface import StoreError, UnsupportedLevel
from lamina.store.member_file import MemberRecord
from lamina.store.membership import Membership, Tenure
from lamina.store.registration import Registration
from lamina.store.session import GHOST_TIMEOUTS
from lamina.store.znodes import ZnodeMetadata

logger = logging.getLogger(__name__)

Registered = Mapping[int, tuple[Registration, int]]
"""Registrations by broker id, each with its epoch."""


class ControllerElection:
    def __init__(
        self,
        node_id: int,
        loop: asyncio.AbstractEventLoop,
        store_thread: Threads,
        membership: Membership,
        store: ZnodeMetadata,
        following: Following,
        facts: ElectionFacts,
        unclean_wait_ms: int,
        remembered: MemberRecord,
        remember: Callable[[MemberRecord], None],
        counters: ReplicationCounters,
        is_refused: IsRefused,
        is_connected: Callable[[Broker], bool],
        look_again: Callable[[], None],
    ) -> None:
        """``facts`` are those with which a controller begins; :meth:`look` is due once ``look_again`` was called.
        ``is_connected`` tells whether this broker has a connection to a controller.

        What this broker knows of the cluster from before is ``remembered``; ``remember`` writes it down, and runs on a
        thread.
        """
        self._node_id = node_id
        self._loop = loop
        self._thread = store_thread
        self._membership = membership
        self._store = store
        self._following = following
        self._facts = facts
        self._unclean_wait_ms = unclean_wait_ms
        self._remembered = remembered
        self._remember = remember
        self._counters = counters
        self._is_refused = is_refused
        self._is_connected = is_connected
        self._look_again = look_again
        self.controller: Controller | None = None
        """While this broker is elected."""
        self.ended_at: tuple[tuple[int, int], Image] | None = None
        """The position and the image with which the last tenure of this broker ended: it may have followed less far."""
        self.controller_broker: Broker | None = None
        """Where the controller is; ``None`` while nobody is elected."""
        self.moved = asyncio.Event()
        """Set when the controller is another one; then there is another event."""
        self._tenure: Tenure | None = None
        """Of an election that was won, while the metadata could not be read yet: it is tried again without another."""
        self._is_stopping = False
        self._is_looking_at_controller = False
        self._answered_epoch: int | None = None
        """The epoch of this broker in which a controller has answered it."""
        self._tasks = Tasks(loop)

    async def check_cluster(self) -> None:
        """Raise :class:`WrongCluster` in an ensemble that was wiped, or restored from an old copy."""
        known = self._remembered
        await self._thread.run(lambda: self._membership.check_cluster(known.cluster_id, known.controller_epoch))

    async def check_levels(self, supported: Mapping[str, range]) -> None:
        """Raise :class:`UnsupportedLevel` in a cluster that has finalized what this broker does not support."""
        check_supported(await self._thread.run(self._store.features), supported)

    async def look(self, registered: Registered, timeout_ms: int) -> None:
        """See who is elected, and campaign where nobody is. ``timeout_ms`` is that of sessions."""
        elected = await self._thread.run(self._membership.controller)
        self._resign_if_replaced(elected)
        if elected is None or (elected[0] == self._node_id and self.controller is None):
            # What an earlier tenure left keeps everybody else from being elected.
            await self._campaign(registered, elected, timeout_ms)
            registered = await self._thread.run(self._membership.brokers)
            elected = await self._thread.run(self._membership.controller)
            self._resign_if_replaced(elected)
        if elected is not None and elected[1] > self._remembered.controller_epoch:
            await self._remember_epoch(elected[1])
        brokers = _brokers(registered)
        self._set_controller(None if elected is None else brokers.get(elected[0]))
        if self.controller is not None:
            await self.controller.brokers_registered(brokers)

    def _resign_if_replaced(self, elected: tuple[int, int] | None) -> None:
        """Another is elected, or nobody is: an operator may have ended the tenure, to have somebody elected."""
        controller = self.controller
        if controller is not None and (elected is None or elected[1] != controller.tenure.controller_epoch):
            self.resign("its tenure was ended" if elected is None else "another controller was elected")

    def _set_controller(self, broker: Broker | None) -> None:
        if broker != self.controller_broker:
            self.controller_broker = broker
            if broker is not None:
                self._following.retry_now()
            self.moved.set()
            self.moved = asyncio.Event()

    async def _remember_epoch(self, controller_epoch: int) -> None:
        """It tells an older ensemble at the next start. A disk that is full keeps nobody from serving."""
        remembered = replace(self._remembered, controller_epoch=controller_epoch)
        try:
            await self._thread.run(lambda: self._remember(remembered))
        except OSError as error:
            logger.warning("controller epoch %d cannot be remembered: %s", controller_epoch, error.strerror)
            return
        self._remembered = remembered

    # Being elected

    async def _campaign(self, registered: Registered, elected: tuple[int, int] | None, timeout_ms: int) -> None:
        tenure = self._tenure
        if tenure is None or elected != (self._node_id, tenure.controller_epoch):
            await self.check_cluster()
            tenure = self._tenure = await self._thread.run(self._membership.elect)
            if tenure is None:
                return
            logger.info("elected controller with epoch %d", tenure.controller_epoch)
        stored = await self._thread.run(self._store.load)
        check_is_later(self._following.decided, stored)
        if self._node_id in registered:
            check_supported(stored.features, registered[self._node_id][0].features)
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
            self._is_refused,
            partial(self._remove_dead, tenure=tenure),
            self._resigned,
        )
        # Others are served from now on, by what is stored.
        self._following.obey()
        self._set_controller(_brokers(registered).get(self._node_id))
        registered = await self._hear(controller, registered, timeout_ms)
        await controller.begin(_brokers(registered), _ready(registered))

    async def _hear(self, controller: Controller, registered: Registered, timeout_ms: int) -> Registered:
        """Wait until all have reported that served under the controller before. Returns who is registered then.

        One that is dead does not report while it is registered, and may have lost what it would be elected for. It is
        looked at only if another controller has answered this broker: else this one may be what reaches nobody.
        """
        deadline = self._loop.time() + timeout_ms * GHOST_TIMEOUTS / 1000
        silent = await controller.hear(_brokers(registered), _ready(registered))
        if self._node_id in registered and registered[self._node_id][1] == self._answered_epoch:
            controller.watch_silent(silent)
        while silent and self._loop.time() < deadline:
            registered = await self._thread.run(self._membership.brokers)
            silent = await controller.hear(_brokers(registered), _ready(registered))
        if silent:
            logger.warning("brokers %s are registered and do not report", sorted(silent))
        return await self._thread.run(self._membership.brokers)

    # Dead brokers

    def answered(self, broker_epoch: int) -> None:
        """A controller has answered this broker, which is registered with that epoch: it reaches others."""
        self._answered_epoch = broker_epoch

    def suspect(self, controller: Broker) -> None:
        """It did not answer: if its process is gone, another is to be elected before its session ends.

        A process that is gone has no connections. While one is open, whoever rejects new ones says nothing of it.
        """
        may_be_gone = controller == self.controller_broker and not self._is_connected(controller)
        if may_be_gone and not self._is_looking_at_controller:
            self._is_looking_at_controller = True
            self._tasks.begin(self._look_at_controller(controller))

    async def _look_at_controller(self, controller: Broker) -> None:
        try:
            if await is_dead(controller, self._is_refused) and not self._is_connected(controller):
                await self._remove_dead([controller], None)
        finally:
            self._is_looking_at_controller = False

    async def _remove_dead(self, brokers: Sequence[Broker], tenure: Tenure | None) -> None:
        """``tenure`` is that of this broker; without one the dead broker is the controller."""
        for broker_id in await self._thread.run(lambda: self._removed(brokers, tenure)):
            logger.warning("broker %d is dead: nothing listens there any more, its registration is removed", broker_id)
            self._look_again()

    def _removed(self, brokers: Sequence[Broker], tenure: Tenure | None) -> list[int]:
        """On the store's thread, in one piece of work: whoever looks there next finds none of them any more."""
        removed = []
        for broker in brokers:
            try:
                if self._membership.remove_dead(broker.id, broker.epoch, tenure):
                    removed.append(broker.id)
            except StoreError as error:
                logger.debug("broker %d is dead, and its registration stays for now: %s", broker.id, error)
        return removed

    # Resigning

    def session_lost(self) -> None:
        """What was ephemeral is gone, the controller's znode too."""
        self._tenure = None
        self.resign("its session was lost")

    def stop(self) -> Tenure | None:
        """Campaign no more. Returns the tenure that ends: whoever leaves the cluster gives it back."""
        self._is_stopping = True
        self._tasks.cancel()
        tenure = None if self.controller is None else self.controller.tenure
        self.resign("this broker stops")
        return tenure

    def resign(self, reason: str) -> None:
        if self.controller is not None:
            self.controller.resign(reason)

    def _resigned(self) -> None:
        """Remove the controller's znode, so that another may be elected, and look who is."""
        controller, self.controller = self.controller, None
        if controller is not None:
            self.ended_at = controller.stream.position, controller.stream.image
        self._set_controller(None)
        if controller is not None and not self._is_stopping:
            self._tasks.begin(self._give_up(controller.tenure))

    async def _give_up(self, tenure: Tenure) -> None:
        try:
            await self._thread.run(lambda: self._membership.resign(tenure))
        except StoreError as error:
            logger.debug("the controller's znode goes with its session: %s", error)
        self._look_again()


def check_supported(features: Features, supported: Mapping[str, range]) -> None:
    unsupported = why_unsupported(features, supported)
    if unsupported is not None:
        raise UnsupportedLevel(unsupported)


def _brokers(registered: Registered) -> dict[int, Broker]:
    return {one: registration.broker(one, epoch) for one, (registration, epoch) in registered.items()}


def _ready(registered: Registered) -> frozenset[int]:
    return frozenset(one for one, (registration, _) in registered.items() if registration.is_ready)
