"""Changes of in-sync sets that this broker's leaders want, on their way to the controller: AlterPartition.

Owns which of them are to be sent: one request is in flight for the whole broker, what is wanted meanwhile goes together
into the next, and there is one change of a partition at a time (R53). The controller's word on each change goes back to
whoever wanted it; what fails as a whole is tried again for ever. Must not decide what is wanted, nor know who the
controller is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from lamina.broker.counters import Counters, Place
from lamina.broker.partitions.leader import InSyncProposal
from lamina.broker.partitions.partition import Partition
from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.wire.api_keys import ALTER_PARTITION

logger = logging.getLogger(__name__)

_VERSIONS = range(3, 4)
_RETRY_SECONDS = 0.05
_RECOVERED = 0
MOST_IN_A_REQUEST = 200
"""More are sent in several: each is encoded, decided on and answered in one turn of a loop."""

AskController = Callable[[MessageCall], Awaitable[Any]]
"""The controller's response to a call, wherever it is now. Raises `KafkaError`."""


class StoredInSync(NamedTuple):
    """The controller's word on a change: why it was refused, or what is stored now."""

    error_code: int
    leader_epoch: int = -1
    in_sync: tuple[int, ...] = ()
    partition_epoch: int = -1


OnStored = Callable[[StoredInSync], None]
_Key = tuple[UUID, int]


class InSyncChanges:
    def __init__(
        self, node_id: int, broker_epoch: Callable[[], int], ask_controller: AskController, counters: Counters
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._ask_controller = ask_controller
        self._counters = counters
        self._pending: dict[_Key, tuple[InSyncProposal, OnStored]] = {}
        self._sending: asyncio.Task[None] | None = None
        self._is_stopped = False

    def want(self, partition: Partition, proposal: InSyncProposal) -> None:
        """Have the controller decide on what a partition's leader wants, and tell the leader."""

        def stored(word: StoredInSync) -> None:
            if word.error_code == 0:
                growth = partition.in_sync_committed(proposal, word.in_sync, word.leader_epoch, word.partition_epoch)
                self._counters.replication.count_in_sync_change(growth)
            elif partition.in_sync_refused(proposal, word.error_code):
                self.propose(partition.topic_id, partition.index, proposal, stored)

        self.propose(partition.topic_id, partition.index, proposal, stored)

    def propose(self, topic_id: UUID, index: int, change: InSyncProposal, on_stored: OnStored) -> None:
        """Have the controller decide on a change; one of the same partition that is pending is given up for it.

        Whoever wanted that one hears nothing more of it.
        """
        self._pending[topic_id, index] = (change, on_stored)
        if self._sending is None and not self._is_stopped:
            self._sending = asyncio.create_task(self._send())

    async def stop(self) -> None:
        self._is_stopped = True
        self._pending.clear()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait((self._sending,))

    async def _send(self) -> None:
        told = ""
        try:
            while self._pending:
                sent = dict(islice(self._pending.items(), MOST_IN_A_REQUEST))
                is_all_stored = False
                try:
                    response = await self._ask_controller(self._call(sent))
                    if response.error_code:
                        raise error_from_code(response.error_code, "the controller refuses AlterPartition as a whole")
                    is_all_stored = self._answered(sent, response)
                except KafkaError as error:
                    if str(error) != told:
                        told = str(error)
                        logger.info("AlterPartition for %d partitions failed, retrying: %s", len(sent), told)
                except Exception as error:
                    self._counters.count_unexpected(Place.REPLICATION)
                    if repr(error) != told:
                        told = repr(error)
                        logger.error("AlterPartition for %d partitions failed, retrying", len(sent), exc_info=error)
                if not is_all_stored:
                    # What was refused may be wanted again at once.
                    await asyncio.sleep(_RETRY_SECONDS)
        finally:
            self._sending = None

    def _call(self, changes: Mapping[_Key, tuple[InSyncProposal, OnStored]]) -> MessageCall:
        topics: dict[UUID, list[dict[str, Any]]] = {}
        for (topic_id, index), (change, _) in changes.items():
            members = [{"broker_id": member, "broker_epoch": epoch} for member, epoch in change.in_sync.items()]
            topics.setdefault(topic_id, []).append(
                {
                    "partition_index": index,
                    "leader_epoch": change.leader_epoch,
                    "new_isr_with_epochs": members,
                    "leader_recovery_state": _RECOVERED,
                    "partition_epoch": change.partition_epoch,
                }
            )
        return MessageCall(
            ALTER_PARTITION,
            _VERSIONS,
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()],
        )

    def _answered(self, sent: Mapping[_Key, tuple[InSyncProposal, OnStored]], response: Any) -> bool:
        """Whether all of it was stored."""
        told = {
            (topic.topic_id, int(one.partition_index)): _stored(one)
            for topic in response.topics
            for one in topic.partitions
        }
        for key, pending in sent.items():
            # What was replaced meanwhile concerns only whoever replaced it.
            if self._pending.get(key) is not pending:
                continue
            del self._pending[key]
            _, on_stored = pending
            try:
                on_stored(told.get(key) or StoredInSync(ErrorCode.UNKNOWN_SERVER_ERROR))
            except Exception as error:
                self._counters.count_unexpected(Place.REPLICATION)
                logger.error("the leader of a partition could not be told what is stored", exc_info=error)
        return not any(stored.error_code for stored in told.values())


def _stored(told: Any) -> StoredInSync:
    return StoredInSync(
        int(told.error_code),
        int(told.leader_epoch),
        tuple(int(member) for member in told.isr),
        int(told.partition_epoch),
    )
