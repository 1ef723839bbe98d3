"""``/v1/transactions``: the transactional ids that this broker coordinates."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import page, window
from lamina.broker.admin.subject import Subject
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.coordinators.transaction_requests import ListRequest
from lamina.errors import KafkaError


async def transactions(subject: Subject, request: Request) -> Response:
    """Those whose shard is loaded; one that has expired since it was listed has no row."""
    limit, after = window(request)
    coordinator = subject.transactions
    listed = (await coordinator.list_loaded(ListRequest())).listings
    ids = sorted(one.transactional_id for one in listed if after is None or one.transactional_id > after)
    return await page(subject.clocks, "transactions", ids, limit, lambda name: _row(coordinator, name), str)


def _row(coordinator: TransactionCoordinator, transactional_id: str) -> dict[str, Any]:
    try:
        told = coordinator.shard_of(transactional_id).look(lambda machine: machine.describe(transactional_id))
    except KafkaError:
        return {"transactional_id": transactional_id, "state": None}
    return {
        "transactional_id": told.transactional_id,
        "state": told.state,
        "producer_id": told.producer.id,
        "producer_epoch": told.producer.epoch,
        "timeout_ms": told.timeout_ms,
        "started_ms": None if told.start_timestamp_ms < 0 else told.start_timestamp_ms,
        "partitions": [{"topic": topic, "partition": index} for topic, index in told.partitions],
    }
