"""Rows to topics: encoded where they come from, sent on an event loop on a thread of its own.

Owns how many rows are encoded together, and that a partition is part of a transaction before anything is sent there.
What is held is bounded: the rows that wait to be encoded, and the producer's buffer. Must not know why rows are
written, nor when a transaction ends.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import pyarrow as pa

from lamina.errors import TopicAuthorizationFailed
from lamina.peer.transacting import Producer
from lamina.producing.decisions import OpenTransaction
from lamina.producing.errors import WriteError
from lamina.producing.producer import Batch, BatchProducer
from lamina.producing.properties import ProducerProperties
from lamina.producing.rows import RowEncoder
from lamina.producing.session import Session
from lamina.producing.topic_sizes import TopicSizes
from lamina.topic_partition import TopicPartition, by_topic

_GATHERED_BYTES: Final = 4 * 1024 * 1024
"""Fewer rows at a time would make batches of a few records where there are many partitions."""


@dataclass(frozen=True, slots=True)
class WritesAs:
    """Who writes: nobody in particular, an idempotent producer, or one in a transaction."""

    producer: Producer | None = None
    transaction: OpenTransaction | None = None
    bumps: bool = False
    """Whether partitions join the transaction by being written to."""


class TopicWriter:
    """To be used as ``with TopicWriter(…) as writer: writer.write(…); writer.flush()``.

    Its end without `flush` leaves what is on its way to its fate.
    """

    def __init__(
        self,
        session: Session,
        properties: ProducerProperties,
        topic: str | None,
        writes_as: WritesAs,
        now_ms: Callable[[], int],
    ) -> None:
        self._session = session
        self._limits = properties.limits
        self._as = writes_as
        self._sizes = TopicSizes(session.cluster)
        self._joined: set[TopicPartition] = set()
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        mine = writes_as.transaction
        producer = writes_as.producer if mine is None else mine.producer
        self._encoder = RowEncoder(
            topic, properties.batch_format, producer, now_ms, session.random, is_transactional=mine is not None
        )

    def __enter__(self) -> "TopicWriter":
        self._producer = self._session.run(self._begin())
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._session.run(self._producer.stop())

    def write(self, rows: pa.RecordBatch) -> None:
        """Waits while too much is on its way. Raises `WriteError` or `KafkaError`, also because of earlier rows."""
        self._gathered.append(rows)
        self._gathered_bytes += rows.nbytes
        if self._gathered_bytes >= _GATHERED_BYTES:
            self._encode()

    def flush(self) -> None:
        """Wait until all rows are acknowledged."""
        self._encode()
        self._session.run(self._producer.flush())

    def _encode(self) -> None:
        if not self._gathered:
            return
        rows = pa.Table.from_batches(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        sizes = self._session.run(self._sizes.of(self._encoder.topics(rows)))
        self._session.run(self._send(list(self._encoder.encode(rows, sizes))))

    # On the loop

    async def _begin(self) -> BatchProducer:
        mine = self._as.transaction
        return BatchProducer(
            self._session.cluster,
            self._session.backoff,
            self._limits,
            None if mine is None else mine.transactional_id,
            joins_by_produce=self._as.bumps,
        )

    async def _send(self, batches: Sequence[Batch]) -> None:
        if self._as.transaction is not None and not self._as.bumps:
            await self._join(self._as.transaction, batches)
        await self._producer.send(batches)

    async def _join(self, mine: OpenTransaction, batches: Iterable[Batch]) -> None:
        new = {(one.topic, one.partition) for one in batches} - self._joined
        partitions = by_topic(sorted(new))
        if partitions:
            try:
                await self._session.transactions.add_partitions(mine, partitions)
            except TopicAuthorizationFailed as error:
                raise WriteError(f"topic {' or '.join(partitions)} may not be written to: {error}") from None
            self._joined |= new
