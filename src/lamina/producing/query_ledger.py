"""What brokers keep of one query, asked for over their protocol: the `Ledger` of `committing` and of `attempting`.

Owns the driver's producer, which fences the drivers before it. Must not know the order of the steps.
"""

from collections.abc import Callable
from functools import partial

from lamina.errors import InvalidProducerEpoch, MessageTooLarge, ProducerFenced
from lamina.peer.cluster import ClusterClient
from lamina.peer.transacting import Producer
from lamina.producing.decision_topic import DecisionTopic
from lamina.producing.decisions import (
    BYTES_PER_TASK,
    OpenTransaction,
    QueryState,
    decode_state,
    driver_id,
    encode_state,
    is_attempt_at,
    without_pool,
)
from lamina.producing.errors import WriteError
from lamina.producing.transactions import Transactions


class QueryLedger:
    def __init__(
        self,
        cluster: ClusterClient,
        transactions: Transactions,
        query: str,
        prefix: str,
        decision_topic: str,
        transaction_timeout_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._transactions = transactions
        self._topic = DecisionTopic(cluster, decision_topic)
        self._query = query
        self._prefix = prefix
        self.timeout_ms = transaction_timeout_ms
        self.now_ms = now_ms
        self._driver: Producer | None = None
        self._sequence = 0

    async def ensure(self) -> None:
        """There is a topic for decisions."""
        await self._topic.ensure()

    async def refuse_too_many(self, tasks: int) -> None:
        """Raises `WriteError` where a decision on so many tasks may not fit in the topic."""
        await self._topic.refuse_more_than_fits(tasks * BYTES_PER_TASK, f"{tasks} tasks")

    async def check_topic(self, written: str | None) -> None:
        """It keeps decisions, as far as can be seen, and no worse than the topic that is `written`, if there is one."""
        await self._topic.refuse_forgetting()
        if written is not None:
            await self._topic.warn_if_less_durable(written)

    async def fence(self) -> None:
        # Read before: what is told then is the id of an earlier driver, or our own, and never of a later one.
        earlier_id = await self._topic.last_driver_id(self._query)
        self._driver = await self._transactions.begin(driver_id(self._prefix, self._query), self.timeout_ms)
        if earlier_id is not None and earlier_id != self._driver.id:
            await self._topic.shut_out(self._query, earlier_id, self.now_ms())
        await self._topic.take_over(self._query, self._driver, self.now_ms())
        self._sequence = 1

    async def read(self) -> QueryState | None:
        found = await self._topic.find(self._query)
        return None if found is None else decode_state(found)

    async def write(self, state: QueryState) -> None:
        assert self._driver is not None, "fence comes first"
        try:
            await self._topic.put(self._query, encode_state(state), self._driver, self._sequence, self.now_ms())
        except MessageTooLarge:
            if not state.pool:
                raise WriteError(
                    f"batch {state.batch} of query {self._query} is not visible: the decision on its "
                    f"{len(state.transactions)} tasks is larger than max.message.bytes of topic {self._topic.name}; "
                    "raise that, or write in fewer tasks (coalesce)"
                ) from None
            await self.write(without_pool(state))
            return
        except (InvalidProducerEpoch, ProducerFenced):
            raise WriteError(
                f"another driver has taken over query {self._query}: two of them run on the same checkpoint"
            ) from None
        self._sequence += 1

    async def open_transactions(self) -> list[OpenTransaction]:
        mine = partial(is_attempt_at, self._prefix, self._query)
        return await self._transactions.open_ones(mine)

    async def is_open(self, transaction: OpenTransaction) -> bool:
        return await self._transactions.is_open(transaction)

    async def end(self, transaction: OpenTransaction, *, is_commit: bool, bumps: bool) -> Producer | None:
        return await self._transactions.end(transaction, is_commit=is_commit, bumps=bumps)

    async def claim(self, transaction: OpenTransaction, token: str) -> bool:
        return await self._topic.claim(transaction.transactional_id, transaction.producer, token, self.now_ms())

    async def renew(self, transactional_id: str) -> Producer:
        return await self._transactions.begin(transactional_id, self.timeout_ms)
