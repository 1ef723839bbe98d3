"""More transactions on one transactional id than a producer id has epochs."""

import pytest

from lamina.coordinators.decision import Now, Producer, Reply, SendMarkers
from lamina.coordinators.transaction_requests import (
    BUMPING,
    AddPartitionsRequest,
    EndRequest,
    InitRequest,
    ProducerIdNeeded,
    TransactionSettings,
)
from lamina.coordinators.transactions import TransactionDecision, TransactionShard

TRANSACTIONS = 40_000
NOW = Now(1_000_000, 1_000)
PARTITIONS = frozenset({("t", 0)})


def carry_out(shard: TransactionShard, decision: TransactionDecision) -> tuple[object, SendMarkers | None]:
    for record in decision.records:
        shard.replay(record)
    for change in decision.soft_changes:
        change()
    response, sent = None, None
    for effect in decision.effects:
        if isinstance(effect, Reply):
            response = effect.response
        elif isinstance(effect, SendMarkers):
            sent = effect
    return response, sent


def test_40_000_transactions_of_version_2_take_two_producer_ids() -> None:
    settings = TransactionSettings()
    shard = TransactionShard(lambda: settings)
    producer, _ = carry_out(shard, shard.init_producer_id(InitRequest("tx", 60_000, fresh_producer_id=1), 1, NOW))
    fresh_id = 1
    given = [producer]
    for _ in range(TRANSACTIONS):
        assert isinstance(producer, Producer)
        carry_out(shard, shard.add_partitions(AddPartitionsRequest("tx", producer, PARTITIONS, BUMPING), 1, NOW))
        request = EndRequest("tx", producer, True, BUMPING)
        try:
            decision = shard.end_txn(request, 1, NOW)
        except ProducerIdNeeded:
            fresh_id += 1
            decision = shard.end_txn(request._replace(fresh_producer_id=fresh_id), 1, NOW)
        producer, sent = carry_out(shard, decision)
        assert sent is not None
        carry_out(shard, shard.markers_written("tx", sent.producer, NOW))
        given.append(producer)
    assert given == [Producer(1, epoch) for epoch in range(32_767)] + [
        Producer(2, epoch) for epoch in range(TRANSACTIONS + 1 - 32_767)
    ]


@pytest.mark.long
def test_40_000_producers_of_one_id_take_two_producer_ids() -> None:
    settings = TransactionSettings(transaction_version=1)
    shard = TransactionShard(lambda: settings)
    given, fresh_id = [], 0
    for _ in range(TRANSACTIONS):
        request = InitRequest("tx", 60_000)
        try:
            decision = shard.init_producer_id(request, 1, NOW)
        except ProducerIdNeeded:
            fresh_id += 1
            decision = shard.init_producer_id(request._replace(fresh_producer_id=fresh_id), 1, NOW)
        given.append(carry_out(shard, decision)[0])
    assert given[32_766:32_768] == [Producer(1, 32_766), Producer(2, 0)]
    assert len(set(given)) == TRANSACTIONS
    assert fresh_id == 2
