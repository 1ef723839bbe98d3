"""The rows of one task: written at least once, or in a transaction that is left open for the driver to end.

Owns what an attempt does before its first row and after its last. One without rows does nothing at all. Must not know
Spark.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from lamina.producing.attempting import open_attempt
from lamina.producing.committing import abort
from lamina.producing.decisions import BatchName, OpenTransaction, Slot
from lamina.producing.explaining import explained
from lamina.producing.query_ledger import QueryLedger
from lamina.producing.session import Session
from lamina.producing.sink_settings import SinkSettings
from lamina.producing.topic_writing import TopicWriter, WritesAs

NowMs = Callable[[], int]


class Attempt(NamedTuple):
    """What one attempt has to tell the driver."""

    transaction: OpenTransaction | None = None
    """``None`` where it wrote nothing."""
    bumps: bool = False


def write_at_least_once(settings: SinkSettings, batches: Iterable[pa.RecordBatch], now_ms: NowMs) -> None:
    """Raises `WriteError` or `KafkaError`; what was acknowledged until then stays."""
    rows = _with_rows(batches)
    if (first := next(rows, None)) is None:
        return
    with Session(settings.client) as session:
        producer = session.run(session.transactions.begin(None, 0)) if settings.producer.is_idempotent else None
        with TopicWriter(session, settings.producer, settings.topic, WritesAs(producer), now_ms) as writer:
            for one in chain([first], rows):
                writer.write(one)
            writer.flush()


def write_once(
    settings: SinkSettings, name: BatchName, slot: Slot, batches: Iterable[pa.RecordBatch], now_ms: NowMs
) -> Attempt:
    """Raises `WriteError` or `KafkaError`; then nothing of it will be seen."""
    rows = _with_rows(batches)
    if (first := next(rows, None)) is None:
        return Attempt()
    with Session(settings.client) as session, explained(settings, name.query):
        ledger = settings.ledger(session, name.query, now_ms)
        attempt = session.run(_open(settings, session, ledger, name, slot))
        if attempt.transaction is None:
            return attempt
        try:
            writes_as = WritesAs(transaction=attempt.transaction, bumps=attempt.bumps)
            with TopicWriter(session, settings.producer, settings.topic, writes_as, now_ms) as writer:
                for one in chain([first], rows):
                    writer.write(one)
                writer.flush()
        except BaseException:
            # Nobody who reads committed records need wait for its timeout.
            session.run(abort(ledger, attempt.transaction, bumps=attempt.bumps))
            raise
        return attempt


async def _open(settings: SinkSettings, session: Session, ledger: QueryLedger, name: BatchName, slot: Slot) -> Attempt:
    await ledger.ensure()
    # Of the tasks of its batch, a task knows its own number: the last one refuses for all of them.
    await ledger.refuse_too_many(slot.partition + 1)
    bumps = await session.transactions.bumps()
    return Attempt(await open_attempt(ledger, settings.prefix, name, slot, uuid4().hex[:12]), bumps)


def _with_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (one for one in batches if one.num_rows)
