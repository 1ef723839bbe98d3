"""Transactions asked for, looked up and ended: what a producer or a driver does with transactional ids of its own.

Owns the attempts at what must wait for a transaction that is just being ended. Must not know queries.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from lamina.errors import ErrorCode, KafkaError, RequestTimedOut, UnsupportedVersion
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.retries import Backoff, is_retriable
from lamina.peer.target import AnyBroker, Broker, Coordinator, CoordinatorType, Target
from lamina.peer.transacting import (
    BUMPING,
    ONGOING,
    TRANSACTION_VERSION,
    Producer,
    TransactionDescribed,
    add_partitions,
    describe_transaction,
    end_transaction,
    first_error,
    init_producer,
    list_transactions,
    producer_after,
    producer_of,
    transaction_described,
    transactional_ids_listed,
)
from lamina.producing.decisions import OpenTransaction
from lamina.producing.errors import TransactionLost

_LOST: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""The id has gone on: the transaction is over, and not as it was to be ended."""


class Transactions:
    """Of one cluster."""

    def __init__(self, cluster: ClusterClient, backoff: Backoff, api_timeout_ms: int) -> None:
        self._cluster = cluster
        self._backoff = backoff
        self._timeout_ms = api_timeout_ms

    async def bumps(self) -> bool:
        """Whether the cluster is at the level at which each end raises the epoch."""
        return await self._cluster.feature_level(TRANSACTION_VERSION) >= BUMPING

    async def begin(self, transactional_id: str | None, transaction_timeout_ms: int) -> Producer:
        """The producer of an id in a new epoch, or one without an id. What was open there is aborted first."""
        to: Target = AnyBroker() if transactional_id is None else _coordinator(transactional_id)
        call = init_producer(transactional_id, transaction_timeout_ms)
        return producer_of(await self._ask(to, call, f"a producer id for {transactional_id or 'idempotent writing'}"))

    async def add_partitions(self, mine: OpenTransaction, partitions: Mapping[str, Sequence[int]]) -> None:
        call = add_partitions(mine.transactional_id, mine.producer, partitions)
        await self._ask(_coordinator(mine.transactional_id), call, f"the transaction of {mine.transactional_id}")

    async def end(self, mine: OpenTransaction, *, is_commit: bool, bumps: bool) -> Producer | None:
        """Whom the id has afterwards, where that is told. May be repeated. Raises `TransactionLost`."""
        what = f"the transaction of {mine.transactional_id}"
        call = end_transaction(mine.transactional_id, mine.producer, is_commit=is_commit, bumps=bumps)
        try:
            return producer_after(await self._ask(_coordinator(mine.transactional_id), call, what))
        except KafkaError as error:
            if error.code in _LOST:
                raise TransactionLost(f"{what} is over already, most likely by its timeout") from error
            raise

    async def described(self, transactional_id: str) -> TransactionDescribed | None:
        call = describe_transaction(transactional_id)
        return transaction_described(await self._ask(_coordinator(transactional_id), call, transactional_id))

    async def is_open(self, mine: OpenTransaction) -> bool:
        """True also where the brokers are too old to say."""
        try:
            described = await self.described(mine.transactional_id)
        except UnsupportedVersion:
            return True
        return described is not None and (described.state, described.producer) == (ONGOING, mine.producer)

    async def open_ones(self, is_wanted: Callable[[str], bool]) -> list[OpenTransaction]:
        """Of all ids that are wanted; none where brokers are too old to tell."""
        call = list_transactions([ONGOING])
        brokers = sorted(await self._cluster.brokers())
        found: set[str] = set()
        for broker in brokers:
            try:
                response = await self._ask(Broker(broker), call, f"broker {broker}: open transactions")
            except UnsupportedVersion:
                return []
            found.update(filter(is_wanted, transactional_ids_listed(response)))
        described = await asyncio.gather(*(self.described(one) for one in sorted(found)))
        return [
            OpenTransaction(one.transactional_id, one.producer)
            for one in described
            if one is not None and one.state == ONGOING
        ]

    async def _ask(self, to: Target, call: MessageCall, what: str) -> Any:
        """The response without an error in it. What passes by itself is waited for."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_ms / 1000
        attempt = 0
        while True:
            response = await self._cluster.request(to, call)
            error = first_error(call, response, what)
            if error is None or error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return response
            if error.code != ErrorCode.CONCURRENT_TRANSACTIONS and not is_retriable(error):
                raise error
            if loop.time() >= deadline:
                raise RequestTimedOut(f"{error}; tried in vain for {self._timeout_ms} ms")
            await asyncio.sleep(self._backoff.wait_ms(attempt) / 1000)
            attempt += 1


def _coordinator(transactional_id: str) -> Coordinator:
    return Coordinator(CoordinatorType.TRANSACTION, transactional_id)
