"""``lamina transactions``, against a broker with transactions in all states."""

from collections.abc import Callable

from confluent_kafka import Producer

from tests.broker.hanging import PRODUCER_EPOCH, PRODUCER_ID, leave_open_transaction
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

Start = Callable[..., BrokerProcess]


def test_transactions_are_listed_and_described(lamina: Lamina, broker: BrokerProcess, topic: str) -> None:
    where = ("--bootstrap-server", broker.address)
    lamina("topics", "create", topic, *where)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(30) == 0
    (listed,) = [
        one for one in lamina("transactions", "list", "--json", *where).objects if one["transactional_id"] == topic
    ]
    assert listed == {
        "type": "transaction",
        "transactional_id": topic,
        "coordinator": 1,
        "producer_id": listed["producer_id"],
        "state": "Ongoing",
    }
    by_id = ("--producer-id", str(listed["producer_id"]))
    assert lamina("transactions", "list", "--state", "Ongoing", *by_id, "--json", *where).objects == [listed]
    assert lamina("transactions", "list", "--state", "Empty", *by_id, "--json", *where).objects == []
    lines = lamina("transactions", "list", *where).out.splitlines()
    assert lines[0].split() == ["transactional", "id", "coordinator", "producer", "id", "state"]
    assert [topic, "1", str(listed["producer_id"]), "Ongoing"] in [line.split() for line in lines]
    (described,) = lamina("transactions", "describe", topic, "--json", *where).objects
    assert described["partitions"] == [{"topic": topic, "partition": 0}]
    assert (described["state"], described["timeout_ms"], described["producer_epoch"]) == ("Ongoing", 60_000, 0)
    assert described["started"].endswith("Z")
    assert f"{topic}-0" in lamina("transactions", "describe", topic, *where).out
    # It is open, and its coordinator knows it: it does not hang.
    outcome = lamina("transactions", "find-hanging", topic, "--max-transaction-timeout", "0", *where)
    assert (outcome.status, outcome.out) == (0, "")
    producer.abort_transaction(30)
    (described,) = lamina("transactions", "describe", topic, "--json", *where).objects
    assert (described["state"], described["partitions"]) == ("CompleteAbort", [])


def test_what_is_not_there_is_one_sentence(lamina: Lamina, broker: BrokerProcess, topic: str) -> None:
    where = ("--bootstrap-server", broker.address)
    outcome = lamina("transactions", "describe", topic, *where)
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "there is no such transactional id" in outcome.err
    outcome = lamina("transactions", "list", "--state", "Sleeping", *where)
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "Sleeping" in outcome.err
    assert lamina("transactions", "find-hanging", "--partition", "0", *where).status == 2
    outcome = lamina("transactions", "find-hanging", topic, *where)
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    lamina("topics", "create", topic, *where)
    outcome = lamina("transactions", "find-hanging", topic, "--partition", "7", *where)
    assert "has no partition 7" in outcome.err
    outcome = lamina("transactions", "abort", topic, "--partition", "0", "--start-offset", "3", "--yes", *where)
    assert outcome.status == 1
    assert "no transaction is open in it" in outcome.err


def test_a_transaction_that_hangs_is_found_and_aborted(lamina: Lamina, own_broker: Start) -> None:
    broker = own_broker()
    broker.stop()
    leave_open_transaction(broker.data_dir)
    broker.start()
    where = ("--bootstrap-server", broker.address)
    assert lamina("transactions", "find-hanging", *where).status == 0, "it is too young"
    outcome = lamina("transactions", "find-hanging", "--max-transaction-timeout", "0", "--json", *where)
    (found,) = outcome.objects
    assert outcome.status == 1
    assert found | {"last_written": ""} == {
        "type": "hanging_transaction",
        "topic": "hanging",
        "partition": 0,
        "producer_id": PRODUCER_ID,
        "producer_epoch": PRODUCER_EPOCH,
        "transactional_id": None,
        "start_offset": 2,
        "last_written": "",
    }
    table = lamina("transactions", "find-hanging", "hanging", "--max-transaction-timeout", "0", *where).out
    assert table.splitlines()[1].split()[:5] == ["hanging", "0", str(PRODUCER_ID), str(PRODUCER_EPOCH), "2"]
    abort = ("transactions", "abort", "hanging", "--partition", "0", "--start-offset")
    assert "at 2" in lamina(*abort, "1", "--yes", *where).err
    assert lamina(*abort, "2", *where).status == 2, "nobody is here to be asked"
    outcome = lamina(*abort, "2", "--yes", *where)
    assert (outcome.status, outcome.out) == (
        0,
        f"Aborted the transaction of producer {PRODUCER_ID} (epoch {PRODUCER_EPOCH}) in hanging-0.\n",
    )
    none = lamina("transactions", "find-hanging", "--max-transaction-timeout", "0", *where)
    assert (none.status, none.out, none.err) == (0, "", "lamina: there are no hanging transactions\n")
