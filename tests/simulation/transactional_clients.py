"""Clients that write in transactions: to several partitions, and from one topic to another exactly once.

Owns how such a client behaves when a request fails: it begins anew with another epoch, which ends what was open. The
epoch goes up with every transaction (KIP-890), so that no late request can touch the next one. Must not know brokers.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.connector import Connector
from lamina.peer.listing import LATEST
from lamina.peer.producing import ProduceCall, partition_produced
from lamina.peer.target import Coordinator, CoordinatorType, Leader
from lamina.wire.fetch_request import READ_COMMITTED
from lamina.wire.produce import PartitionRecords, ProduceRequest, TopicRecords
from tests.simulation.clients import PRODUCE_TIMEOUT_MS, SimulatedClient, Surroundings, committed_offset
from tests.simulation.judge import Outcome, TopicPartition, Transaction
from tests.simulation.reading import read

_INIT_PRODUCER_ID, _END_TXN, _TXN_OFFSET_COMMIT = 22, 26, 28
_PRODUCE_VERSIONS = range(12, 13)
_TIMEOUT = timedelta(seconds=20)
_MAX_BYTES = 1 << 16
_BEGIN_ANEW = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
"""What a client may see after a late request of its own, or after its transaction ran out of time."""


@dataclass(slots=True)
class _Identity:
    producer_id: int
    epoch: int


class _TransactionalClient(SimulatedClient):
    def __init__(self, name: str, around: Surroundings, connector: Connector) -> None:
        super().__init__(name, around, connector)
        self._me: _Identity | None = None
        """Unknown until a coordinator tells it, and after every failure."""
        self._sequences: dict[TopicPartition, int] = {}

    def failed(self, what: str, error: KafkaError) -> None:
        self._me = None
        if error.code in _BEGIN_ANEW:
            self.tell(f"{what}: {type(error).__name__}: {error}")
        else:
            super().failed(what, error)

    async def identity(self) -> _Identity:
        if self._me is None:
            response = await self._ask(
                MessageCall(
                    _INIT_PRODUCER_ID,
                    range(5, 6),
                    transactional_id=self.name,
                    transaction_timeout=_TIMEOUT,
                    producer_id=-1,
                    producer_epoch=-1,
                )
            )
            self._take_identity(response)
            self.tell(f"is producer {response.producer_id}, epoch {response.producer_epoch}")
        assert self._me is not None
        return self._me

    def _take_identity(self, response: Any) -> None:
        """Sequences begin anew with each epoch."""
        self._me = _Identity(response.producer_id, response.producer_epoch)
        self._sequences.clear()

    async def produce(self, key: TopicPartition, values: list[bytes]) -> None:
        me, sequence = await self.identity(), self._sequences.get(key, 0)
        batch = self.batch(
            values,
            producer_id=me.producer_id,
            producer_epoch=me.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        topic = TopicRecords(key[0], None, [PartitionRecords(key[1], memoryview(batch))])
        call = ProduceCall(ProduceRequest(self.name, -1, PRODUCE_TIMEOUT_MS, [topic]))
        call.versions = _PRODUCE_VERSIONS
        told = partition_produced(await self.cluster.request(Leader(*key), call))
        if told.error_code:
            raise error_from_code(told.error_code, f"Produce: {told.error_message}")
        self._sequences[key] = sequence + len(values)
        self.judge.acknowledged(key, told.base_offset, values)

    async def end(self, transaction: Transaction, *, is_commit: bool) -> None:
        me = await self.identity()
        transaction.outcome = Outcome.ENDING if is_commit else Outcome.ABORTED
        response = await self._ask(
            MessageCall(
                _END_TXN,
                range(5, 6),
                transactional_id=self.name,
                producer_id=me.producer_id,
                producer_epoch=me.epoch,
                committed=is_commit,
            )
        )
        self._take_identity(response)
        transaction.outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
        self.tell(f"{transaction.outcome} {transaction.values}")

    async def _ask(self, call: MessageCall) -> Any:
        """Of its coordinator; it is asked again while the last transaction is being ended."""
        while True:
            response = await self.cluster.request(Coordinator(CoordinatorType.TRANSACTION, self.name), call)
            if not response.error_code:
                return response
            error = error_from_code(response.error_code, f"API {call.api_key}")
            if error.code != ErrorCode.CONCURRENT_TRANSACTIONS:
                raise error
            await asyncio.sleep(0.05)


class TransactionalProducer(_TransactionalClient):
    """Writes to several partitions in one transaction, which it commits or aborts."""

    def __init__(self, name: str, around: Surroundings, connector: Connector, keys: list[TopicPartition]) -> None:
        super().__init__(name, around, connector)
        self._keys = keys

    async def step(self) -> bool:
        try:
            await self.identity()
            if self.is_finishing:
                return True
            values = {key: self.new_values(self.rng.randint(1, 2)) for key in self._keys}
            transaction = self.judge.begin(values)
            for key in self._keys:
                await self.produce(key, values[key])
            await self.end(transaction, is_commit=self.rng.random() < 0.7)
        except KafkaError as error:
            self.failed("transact", error)
        return False


class Copier(_TransactionalClient):
    """Copies a partition to another one exactly once: copies and positions are committed together.

    It is told to finish when nothing more will be written to its source.
    """

    def __init__(
        self, name: str, around: Surroundings, connector: Connector, source: TopicPartition, target: TopicPartition
    ) -> None:
        super().__init__(name, around, connector)
        self.source = source
        self.target = target
        self._position: int | None = None

    async def step(self) -> bool:
        try:
            await self.identity()
            if self._position is None:
                self._position = await committed_offset(self.cluster, self.name, self.source)
                self.tell(f"copies from {self._position} on")
            if self.is_finishing and await self._is_at_end(self._position):
                return True
            self._position = await self._copy(self._position)
        except KafkaError as error:
            self._position = None
            self.failed("copy", error)
        return False

    async def _is_at_end(self, position: int) -> bool:
        """Also behind transactions that are still to be ended."""
        return position >= (await self.cluster.list_offset(*self.source, LATEST)).offset

    async def _copy(self, position: int) -> int:
        fetched = await self.cluster.fetch(
            *self.source, position, max_bytes=_MAX_BYTES, max_wait_ms=100, isolation_level=READ_COMMITTED
        )
        records = [record for record in read(fetched) if record.offset >= position][: self.rng.randint(1, 4)]
        if not records:
            return position
        after = records[-1].offset + 1
        values = [record.value for record in records if record.is_visible]
        transaction = self.judge.begin({})
        if values:
            await self.produce(self.target, values)
        await self._commit_position(after)
        await self.end(transaction, is_commit=True)
        self.tell(f"copied {values}, and is at {after}")
        return after

    async def _commit_position(self, position: int) -> None:
        me = await self.identity()
        partition = {
            "partition_index": self.source[1],
            "committed_offset": position,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        call = MessageCall(
            _TXN_OFFSET_COMMIT,
            range(5, 6),
            transactional_id=self.name,
            group_id=self.name,
            producer_id=me.producer_id,
            producer_epoch=me.epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": self.source[0], "partitions": [partition]}],
        )
        response = await self.cluster.request(Coordinator(CoordinatorType.GROUP, self.name), call)
        code = response.topics[0].partitions[0].error_code
        if code:
            raise error_from_code(code, "TxnOffsetCommit")
