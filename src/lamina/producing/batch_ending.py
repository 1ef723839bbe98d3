"""The end of a batch on the driver: its attempts' transactions are committed, or aborted.

Owns what the driver needs of a cluster for it. Must not know Spark.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from lamina.producing.committing import abort_batch, commit_batch
from lamina.producing.decisions import BatchName, OpenTransaction
from lamina.producing.explaining import explained
from lamina.producing.query_ledger import QueryLedger
from lamina.producing.session import Session
from lamina.producing.sink_settings import SinkSettings
from lamina.producing.task_writing import Attempt


def commit(settings: SinkSettings, name: BatchName, attempts: Iterable[Attempt], now_ms: Callable[[], int]) -> None:
    """Raises `WriteError` or `KafkaError`; then the batch is to be committed again, by whoever comes next."""
    _end(partial(_commit_kept, settings.topic), settings, name, attempts, now_ms)


def abort(settings: SinkSettings, name: BatchName, attempts: Iterable[Attempt], now_ms: Callable[[], int]) -> None:
    """Nothing, where the batch was decided before it failed."""
    _end(abort_batch, settings, name, attempts, now_ms)


async def _commit_kept(
    topic: str | None, ledger: QueryLedger, name: BatchName, written: Sequence[OpenTransaction], *, bumps: bool
) -> None:
    await ledger.check_topic(topic)
    await commit_batch(ledger, name, written, bumps=bumps)


def _end(
    end: Callable[..., Coroutine[Any, Any, None]],
    settings: SinkSettings,
    name: BatchName,
    attempts: Iterable[Attempt],
    now_ms: Callable[[], int],
) -> None:
    with_rows = [one for one in attempts if one.transaction is not None]
    written = [one.transaction for one in with_rows]
    with Session(settings.client) as session, explained(settings, name.query):
        ledger = settings.ledger(session, name.query, now_ms)
        session.run(ledger.ensure())
        # Those that wrote while the brokers' level was raised are ended as at the one before.
        bumps = all(one.bumps for one in with_rows) and session.run(session.transactions.bumps())
        session.run(end(ledger, name, written, bumps=bumps))
