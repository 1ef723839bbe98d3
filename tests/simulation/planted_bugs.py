"""The classic bugs of replication, each as a patch of the code that the brokers run.

Owns what each breaks, named after its fact in replication.md, and the first seed whose world shows it. Must not know
how worlds are lived.

Some are not planted, because no world could show them. R94, a follower that lags and joins again and again while too
few are in sync, breaks no promise: ``test_r94_...`` in tests/broker/partitions/test_leader.py. R95 and R96 need a
reassignment of replicas, which Lamina does not offer: ``..._r95`` and ``..._r96`` in tests/controller.

Nor is a broker that believes changes of an older controller than it has followed: whoever knows of a newer one drops
what the older has not answered yet, so that such changes do not come. ``test_an_older_controller_is_not_believed`` in
tests/broker/cluster/test_following.py hands them over.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

from lamina.broker.metadata import controller_election
from lamina.broker.metadata.controller import Controller
from lamina.broker.metadata.member import Member
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.partitions.leader import InSyncProposal, Leader
from lamina.broker.partitions.partition import Partition
from lamina.broker.replication import alignment
from lamina.broker.replication.alignment import Alignment
from lamina.broker.replication.fetcher import Fetcher
from lamina.broker.requests.handlers import fetch, list_offsets
from lamina.broker.requests.handlers.fetch import Fetch
from lamina.controller import brokers as controller_brokers
from lamina.controller import in_sync
from lamina.image import features
from lamina.image.image import Image
from lamina.log.epochs import EpochStart
from lamina.log.partition_log import PartitionLog
from lamina.store.znodes import ZnodeMetadata
from lamina.wire.fetch_response import DivergingEpoch

_MOMENT_S = 0.001


def does_nothing(*_: Any, **__: Any) -> None:
    """In place of a check or of an effect."""


def truncates_to_high_watermark() -> AbstractContextManager[Any]:
    return mock.patch.object(
        alignment, "first_offset", lambda log, high_watermark: min(high_watermark, log.log_end_offset)
    )


def keeps_foreign_tail() -> AbstractContextManager[Any]:
    """The leader's end of an epoch that this log does not have, as if it had."""

    def offset(log: Any, high_watermark: int, leader_end: EpochStart) -> int:
        return int(min(leader_end.start_offset, log.log_end_offset))

    return mock.patch.object(alignment, "truncation_offset", offset)


def keeps_empty_epochs() -> AbstractContextManager[Any]:
    def forget(_: PartitionLog) -> Iterator[Any]:
        return iter(())

    return mock.patch.object(PartitionLog, "forget_empty_epochs", forget)


@contextmanager
def takes_watermark_of_divergence() -> Iterator[None]:
    """The log is cut a moment later, as where the cleaner works on it: otherwise only who reads there could see it."""
    right_take, right_diverged = Fetcher._take, Alignment.diverged

    def take(self: Fetcher, one: Any, fetched: Any) -> Iterator[None]:
        if fetched.diverging_epoch is not None:
            one.partition.take_watermarks(fetched.high_watermark, fetched.log_start_offset)
        return right_take(self, one, fetched)

    async def diverged(self: Alignment, partition: Any, follower: Any, leader_end: EpochStart) -> bool:
        await asyncio.sleep(_MOMENT_S)
        return await right_diverged(self, partition, follower, leader_end)

    with mock.patch.object(Fetcher, "_take", take), mock.patch.object(Alignment, "diverged", diverged):
        yield


def counts_diverging_fetches() -> AbstractContextManager[Any]:
    right = Fetch._read_one

    def read_one(
        self: Fetch, request: Any, message: Any, key: Any, asked: Any, read: Any, feed: Any, *, is_arrival: bool
    ) -> None:
        right(self, request, message, key, asked, read, feed, is_arrival=is_arrival)
        if message.replica_id >= 0 and read.answered[-1][1].diverging_epoch is not None:
            read.partitions[-1][0].replica_fetched(
                message.replica_id, message.replica_epoch, asked.fetch_offset, asked.log_start_offset
            )

    return mock.patch.object(Fetch, "_read_one", read_one)


def expands_below_epoch_start() -> AbstractContextManager[Any]:
    right = Leader.propose_expansion

    def propose(self: Leader, *args: Any) -> InSyncProposal | None:
        start_offset, self.start_offset = self.start_offset, 0
        try:
            return right(self, *args)
        finally:
            self.start_offset = start_offset

    return mock.patch.object(Leader, "propose_expansion", propose)


def tells_offsets_too_early() -> AbstractContextManager[Any]:
    return mock.patch.object(list_offsets, "_check_available", does_nothing)


def keeps_high_watermark_when_truncated() -> AbstractContextManager[Any]:
    return mock.patch.object(Partition, "was_truncated", does_nothing)


def ignores_leader_epochs() -> AbstractContextManager[Any]:
    return mock.patch.object(Partition, "check_epoch", does_nothing)


@contextmanager
def takes_draining_brokers_in() -> Iterator[None]:
    right_online, right_check = Image.is_online, in_sync._check_eligible

    def is_online(self: Image, *replica: Any) -> bool:
        return right_online(_without_draining(self), *replica)

    def check(image: Image, *facts: Any, is_leader: bool) -> None:
        right_check(_without_draining(image), *facts, is_leader=is_leader)

    with mock.patch.object(Image, "is_online", is_online), mock.patch.object(in_sync, "_check_eligible", check):
        yield


def _without_draining(image: Image) -> Image:
    return replace(image, brokers={one: replace(broker, is_draining=False) for one, broker in image.brokers.items()})


@contextmanager
def ignores_broker_epochs() -> Iterator[None]:
    right = in_sync._check_eligible

    def check(image: Image, key: Any, member: in_sync.BrokerState, *, is_leader: bool) -> None:
        right(image, key, in_sync.BrokerState(member.broker_id), is_leader=is_leader)

    def is_eligible(self: Leader, replica_id: int) -> bool:
        return self._broker_epoch_of(replica_id) is not None

    with (
        mock.patch.object(in_sync, "_check_eligible", check),
        mock.patch.object(Leader, "_is_eligible", is_eligible),
    ):
        yield


def assumes_shrink_is_stored() -> AbstractContextManager[Any]:
    right = Leader._propose

    def propose(self: Leader, wanted: frozenset[int]) -> InSyncProposal:
        proposal = right(self, wanted)
        self.maximal_in_sync = wanted
        return proposal

    return mock.patch.object(Leader, "_propose", propose)


@contextmanager
def stands_still_after_change() -> Iterator[None]:
    """The high watermark moves by appends and fetches only.

    Not only after the controller's answer: without that, the news of the change, or the next look at who is behind,
    would move it a moment later.
    """
    right, right_fetched = Partition._advance_replicated, Partition.replica_fetched
    fetched: list[Partition] = []

    def advance(self: Partition, leader: Leader, size_bytes: int) -> None:
        if size_bytes or self in fetched:
            right(self, leader, size_bytes)

    def replica_fetched(self: Partition, *facts: Any) -> None:
        fetched.append(self)
        try:
            right_fetched(self, *facts)
        finally:
            fetched.pop()

    with (
        mock.patch.object(Partition, "_advance_replicated", advance),
        mock.patch.object(Partition, "replica_fetched", replica_fetched),
    ):
        yield


@contextmanager
def misses_bounces() -> Iterator[None]:
    """A broker that comes back before its death was seen stays in sync."""
    right = controller_brokers._arrive
    right_registered = Controller.brokers_registered

    def arrive(image: Image, arrivals: Any, *args: Any) -> Image:
        same = {one: arrivals[one].broker for one in arrivals if one in image.brokers}
        return right(_with_epochs(image, same), arrivals, *args)

    async def registered(self: Controller, brokers: Mapping[int, Any]) -> None:
        self.stream.image = _with_epochs(self.stream.image, brokers)
        await right_registered(self, brokers)

    with (
        mock.patch.object(controller_brokers, "_arrive", arrive),
        mock.patch.object(Controller, "brokers_registered", registered),
    ):
        yield


def _with_epochs(image: Image, brokers: Mapping[int, Any]) -> Image:
    known = {one: replace(broker, epoch=brokers[one].epoch) for one, broker in image.brokers.items() if one in brokers}
    return replace(image, brokers={**image.brokers, **known})


def diverges_below_log_start() -> AbstractContextManager[Any]:
    right = fetch._divergence

    def divergence(log: PartitionLog, asked: Any) -> DivergingEpoch | None:
        if asked.fetch_offset >= log.log_start_offset:
            return right(log, asked)
        epoch, end_offset = log.epochs.end_of(asked.last_fetched_epoch, log.log_end_offset)
        return DivergingEpoch(max(epoch, 0), max(end_offset, 0))

    return mock.patch.object(fetch, "_divergence", divergence)


@contextmanager
def binds_waiters_to_nothing() -> Iterator[None]:
    """What waits for a commit is told by any high watermark, under whatever leader."""

    def resign(self: Partition) -> None:
        self.leader = self.follower = None
        self._uncommitted.clear()
        self._readers.stop_waiting()
        self._followers.stop_waiting()

    right = Partition._follow_high_watermark

    def follow(self: Partition, high_watermark: int) -> None:
        right(self, high_watermark)
        self._commit_waiters.reached(self.high_watermark, None)

    with mock.patch.object(Partition, "resign", resign), mock.patch.object(Partition, "_follow_high_watermark", follow):
        yield


def commits_with_committed_set() -> AbstractContextManager[Any]:
    right = Leader.high_watermark

    def high_watermark(self: Leader, *args: Any) -> int | None:
        maximal, self.maximal_in_sync = self.maximal_in_sync, self.in_sync
        try:
            with mock.patch.object(Leader, "is_caught_up", return_value=False):
                return right(self, *args)
        finally:
            self.maximal_in_sync = maximal

    return mock.patch.object(Leader, "high_watermark", high_watermark)


def commits_below_minimum() -> AbstractContextManager[Any]:
    right = Leader.high_watermark
    return mock.patch.object(Leader, "high_watermark", lambda self, end, _minimum, now_ms: right(self, end, 1, now_ms))


def takes_roles_of_former_life() -> AbstractContextManager[Any]:
    return mock.patch.object(Cluster, "is_registered_in", lambda self, image: self.node_id in image.brokers)


def writes_after_tenure() -> AbstractContextManager[Any]:
    """A controller that was replaced still writes."""

    def transact(self: ZnodeMetadata, operations: Any, _tenure: Any) -> None:
        self._store.transact(operations)

    return mock.patch.object(ZnodeMetadata, "_transact", transact)


@contextmanager
def takes_older_brokers_in() -> Iterator[None]:
    """Neither they nor the controller look at finalized levels."""
    with (
        mock.patch.object(Controller, "_check_supports", does_nothing),
        mock.patch.object(controller_election, "check_supported", does_nothing),
    ):
        yield


def finalizes_too_early() -> AbstractContextManager[Any]:
    """A level that only some brokers support."""
    return mock.patch.object(features, "_levels", return_value=range(100))


def keeps_lease_without_registration() -> AbstractContextManager[Any]:
    """Taken for dead, it registers again in the same session."""
    return mock.patch.object(Member, "_end_lease", does_nothing)


class Bug(NamedTuple):
    plant: Callable[[], AbstractContextManager[Any]]
    seed: int
    """The first that shows it."""


PLANTED = {
    "R82: a follower truncates to its high watermark": Bug(truncates_to_high_watermark, 0),
    "R83: a follower keeps the tail of an epoch that its leader lacks": Bug(keeps_foreign_tail, 265),
    "R84: epochs without records stay when a log is truncated": Bug(keeps_empty_epochs, 20),
    "R85: a follower takes the high watermark of a diverging answer": Bug(takes_watermark_of_divergence, 17),
    "R86: a leader counts the fetch of a diverging follower": Bug(counts_diverging_fetches, 0),
    "R87: a follower joins below the start of the epoch": Bug(expands_below_epoch_start, 40),
    "R88: a new leader tells the end of a partition too early": Bug(tells_offsets_too_early, 16),
    "R89: a truncation leaves the high watermark": Bug(keeps_high_watermark_when_truncated, 18),
    "R90: leader epochs are not compared": Bug(ignores_leader_epochs, 2),
    "R91: brokers that stop are taken into in-sync sets": Bug(takes_draining_brokers_in, 1),
    "R92: broker epochs are not compared": Bug(ignores_broker_epochs, 137),
    "R93: a shrink is taken for stored before the answer": Bug(assumes_shrink_is_stored, 1),
    "R93: the high watermark stands still after an in-sync change": Bug(stands_still_after_change, 4),
    "R97: a bounce is not seen": Bug(misses_bounces, 0),
    "R98: a fetch below the log start is told where it diverges": Bug(diverges_below_log_start, 26),
    "R99: commit waiters are bound to no epoch": Bug(binds_waiters_to_nothing, 57),
    "R10: the high watermark goes by the committed set": Bug(commits_with_committed_set, 27),
    "R11: the high watermark moves below the minimum": Bug(commits_below_minimum, 2),
    "own: a broker takes the roles of its former life": Bug(takes_roles_of_former_life, 72),
    "own: a replaced controller writes": Bug(writes_after_tenure, 6),
    "own: a lease outlives its registration": Bug(keeps_lease_without_registration, 13),
    "own: a broker of an older version is taken in": Bug(takes_older_brokers_in, 4),
    "own: a level is finalized that a broker lacks": Bug(finalizes_too_early, 0),
}
