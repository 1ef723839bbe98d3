"""Batches of a query written once to a real Kafka, at both levels of its transactions: what Kafka's readers see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from lamina.peer.target import Broker
from lamina.peer.transacting import list_transactions, transactional_ids_listed
from lamina.producing.batch_ending import abort, commit
from lamina.producing.decisions import Slot
from lamina.producing.errors import WriteError
from lamina.producing.session import Session
from lamina.producing.task_writing import write_once
from tests.peers.kafka import Kafka, run_tool
from tests.producing.tasks import batch, now_ms, rows, settings, until_seen, write

pytest.importorskip("pyarrow")

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "log.retention.ms": "-1",
}
"""And it deletes no records for their age: those of these tests are of 2023."""
LEVELS = [2, 0]


@pytest.fixture(scope="module", params=LEVELS, ids=lambda level: f"transaction.version={level}")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with Kafka(tmp_path_factory.mktemp("kafka"), SETTINGS) as node:
        if request.param != LEVELS[0]:
            change = ("downgrade", "--feature", f"transaction.version={request.param}")
            run_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", node.bootstrap, *change)
        yield node


def test_a_batch_is_seen_when_it_is_committed_and_is_not_written_again(kafka: Kafka) -> None:
    sink = settings(kafka.bootstrap, "batches")
    for number in range(3):
        attempts = write(sink, number, [[f"{number}a", f"{number}b"], [f"{number}c"]])
        assert seen_by_a_consumer(kafka, "batches", 3 * number) == values(number)
        commit(sink, batch(sink, number), attempts, now_ms)
        until_seen(kafka.bootstrap, "batches", values(number + 1))
    again = write(sink, 2, [["2a", "2b"], ["2c"]])
    assert [one.transaction for one in again] == [None, None]
    commit(sink, batch(sink, 2), again, now_ms)
    assert seen_by_a_consumer(kafka, "batches", 9) == values(3)


def test_what_a_run_that_died_left_open_goes_with_the_next_batch(kafka: Kafka) -> None:
    sink = settings(kafka.bootstrap, "died")
    commit(sink, batch(sink, 0), write(sink, 0, [["0a", "0b"], ["0c"]]), now_ms)
    write(sink, 1, [["lost"], ["lost"]])
    commit(sink, batch(sink, 1), write(sink, 1, [["1a", "1b"], ["1c"]]), now_ms)
    abort(sink, batch(sink, 2), write(sink, 2, [["lost"]]), now_ms)
    until_seen(kafka.bootstrap, "died", values(2))
    with Session(sink.client) as session:
        assert session.run(sink.ledger(session, "q-died", now_ms).open_transactions()) == []


def test_two_attempts_that_find_the_same_id_free_do_not_share_it(kafka: Kafka) -> None:
    sink = settings(kafka.bootstrap, "stage-again")
    commit(sink, batch(sink, 0), write(sink, 0, [["0a", "0b", "0c"]]), now_ms)
    first, second = (write_once(sink, batch(sink, 1), Slot(0, 0), [rows(["1a", "1b", "1c"])], now_ms) for _ in range(2))
    assert first.transaction != second.transaction
    commit(sink, batch(sink, 1), [second], now_ms)
    until_seen(kafka.bootstrap, "stage-again", values(2))


def test_hundreds_of_batches_take_as_many_ids_as_one(kafka: Kafka) -> None:
    sink = settings(kafka.bootstrap, "many")
    for number in range(200):
        commit(sink, batch(sink, number), write(sink, number, [[f"{number}"], [f"{number}"]]), now_ms)
    until_seen(kafka.bootstrap, "many", sorted(f"{number}" for number in range(200) for _ in range(2)))
    with Session(sink.client) as session:
        found = transactional_ids_listed(session.run(session.cluster.request(Broker(1), list_transactions())))
    assert len([one for one in found if one.startswith("lamina-q-many-task-")]) == 2


def test_rights_that_are_missing_are_named(kafka: Kafka) -> None:
    nobody = ("User:ANONYMOUS", "*", AclOperation.WRITE, AclPermissionType.DENY)
    denied = AclBinding(ResourceType.TRANSACTIONAL_ID, "lamina-q-denied-", ResourcePatternType.PREFIXED, *nobody)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (made,) = admin.create_acls([denied]).values()
    made.result(30)
    sentence = (
        r"not allowed: .*TRANSACTIONAL_ID_AUTHORIZATION_FAILED.* begin with lamina-q-denied-, .*exactlyOnce=false$"
    )
    with pytest.raises(WriteError, match=sentence):
        write(settings(kafka.bootstrap, "denied"), 0, [["never"]])


def test_a_timeout_above_the_brokers_is_refused_before_anything_is_written(kafka: Kafka) -> None:
    sink = settings(kafka.bootstrap, "too-long", transaction_timeout_ms="900001")
    with pytest.raises(WriteError, match="do not allow transactions of 900001 ms"):
        write(sink, 0, [["never"]])


def values(batches: int) -> list[str]:
    return [f"{number}{letter}" for number in range(batches) for letter in "abc"]


def seen_by_a_consumer(kafka: Kafka, topic: str, wanted: int) -> list[str]:
    """What librdkafka gives to who reads committed records: as many as are wanted, and what else there is."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "none", "enable.partition.eof": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(wanted, 30) + consumer.consume(1, 0.5)
        return sorted((one.value() or b"").decode() for one in found)
    finally:
        consumer.close()
