"""One transactional id for a long time, with real clients: epochs that run out, very many transactions, a kill at the
worst moment."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from lamina.coordinators.decision import Decision
from lamina.coordinators.records.transaction_records import (
    Status,
    TransactionKey,
    TransactionRecord,
    TransactionValue,
)
from tests.broker.in_process import InProcessBroker
from tests.broker.process import BrokerProcess
from tests.broker.test_transactions_clients import Confluent, committed_offset, make_topic, read_to_the_end
from tests.broker.transacting import Transacting

pytestmark = pytest.mark.timeout(1800)

Start = Callable[..., BrokerProcess]
TRANSACTIONS = int(os.environ.get("LAMINA_TRANSACTIONS", "200"))
"""On one transactional id; `make faults` asks for 40,000, more than there are epochs."""
NEARLY_USED_UP = 32_764


def producer_of(data_directory: Path, transactional_id: str, epoch: int | None = None) -> tuple[int, int]:
    """The id and epoch that the coordinator of a broker that does not run knows; after setting the epoch, if given."""
    broker = InProcessBroker(data_directory, {})
    broker.settle()
    transacting = Transacting(broker, transactional_id)
    if epoch is not None:
        known = transacting.describe()
        now_ms = broker.parts.clocks.now_ms()
        value = TransactionValue(known.producer_id, epoch, 60_000, Status.COMPLETE_COMMIT, frozenset(), now_ms, now_ms)
        record = TransactionRecord(TransactionKey(transactional_id), value)
        broker.parts.transactions.shard_of(transactional_id).run(lambda _: Decision([record]))
    known = transacting.describe()
    broker.close()
    return known.producer_id, known.producer_epoch


@pytest.mark.long
def test_when_the_epochs_run_out_a_client_goes_on_with_another_producer_id_and_zombies_stay_fenced(
    own_broker: Start,
) -> None:
    broker = own_broker()
    broker.keep_port()
    make_topic(broker, "t")
    client = Confluent(broker.address, "orders")
    client.begin()
    client.send("t", b"first")
    client.commit()
    client.close()
    broker.stop()
    first_id, epoch = producer_of(broker.data_dir, "orders", NEARLY_USED_UP)
    assert epoch == NEARLY_USED_UP
    broker.start()
    expected, zombies = [b"first"], []
    for number in range(6):
        client = Confluent(broker.address, "orders")
        for part in range(2):
            client.begin()
            client.send("t", b"%d.%d" % (number, part))
            client.commit()
            expected.append(b"%d.%d" % (number, part))
        client.begin()
        client.send("t", b"a zombie's")
        zombies.append(client)
    zombies.pop().abort()
    for zombie in zombies:
        with pytest.raises(KafkaException):
            zombie.commit()
    assert read_to_the_end(broker, "t") == expected
    broker.stop()
    last_id, epoch = producer_of(broker.data_dir, "orders")
    assert last_id != first_id
    assert epoch < NEARLY_USED_UP


@pytest.mark.long
def test_every_one_of_very_many_transactions_on_one_id_is_read_once_and_in_order(own_broker: Start) -> None:
    broker = own_broker()
    make_topic(broker, "t")
    client = Confluent(broker.address, "orders")
    expected = []
    for number in range(TRANSACTIONS):
        client.begin()
        client.send("t", b"%d" % number)
        if number % 10 == 9:
            client.abort()
        else:
            client.commit()
            expected.append(b"%d" % number)
    client.close()
    assert read_to_the_end(broker, "t") == expected


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_transaction_is_ended_whole_though_the_broker_was_killed_between_its_offsets_and_its_end(
    own_broker: Start, commit: bool
) -> None:
    broker = own_broker()
    broker.keep_port()
    make_topic(broker, "t")
    client = Confluent(broker.address, "orders")
    client.begin()
    client.send("t", b"before")
    client.commit_offset("readers", "t", 1)
    client.commit()
    client.begin()
    client.send("t", b"value")
    assert client.producer.flush(60) == 0
    client.commit_offset("readers", "t", 7)
    broker.kill()
    broker.start()
    if commit:
        client.commit()
    else:
        client.abort()
    client.close()
    assert read_to_the_end(broker, "t") == ([b"before", b"value"] if commit else [b"before"])
    assert committed_offset(broker, "readers", "t") == (7 if commit else 1)
