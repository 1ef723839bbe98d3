"""Three real brokers under load, and what may happen to them on any day: nothing that was acknowledged is lost."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cluster.exactly_once_copy import copied_value
from tests.cluster.faults.copies import Copies
from tests.cluster.faults.story import Story
from tests.cluster.three_brokers import ALL, SESSION_MS, WAIT_SECONDS, ThreeBrokers
from tests.cluster.verifiable_consumer import VerifiableConsumer, read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.cluster.verifying import verify

pytestmark = pytest.mark.timeout(180)

A_TRANSACTION = 50


def test_a_leader_that_is_killed_under_load_is_replaced_and_copies_when_it_is_back(
    brokers: ThreeBrokers, topic: str
) -> None:
    brokers.create_topic(topic, 3)
    killed = brokers.leader(topic)
    with (
        VerifiableConsumer(brokers.bootstrap, topic, 3) as consumer,
        VerifiableProducer(brokers.bootstrap, topic, 3) as producer,
    ):
        producer.await_acked(300)
        brokers.kill(killed)
        producer.await_acked(300)
        brokers.restart(killed)
        brokers.await_in_sync(topic)
        producer.await_acked(300)
        producer.stop()
    verify(producer, read_all(brokers.bootstrap, topic, 3), consumer)
    print(f"longest wait after a kill: {producer.longest_wait_seconds():.2f} s; the session lasts {SESSION_MS} ms")


def test_all_that_is_acknowledged_is_there_after_all_were_killed_at_once(brokers: ThreeBrokers, topic: str) -> None:
    brokers.create_topic(topic, 3)
    with (
        VerifiableConsumer(brokers.bootstrap, topic, 3) as consumer,
        VerifiableProducer(brokers.bootstrap, topic, 3) as producer,
    ):
        producer.await_acked(300)
        brokers.kill_everything()
        brokers.start_again()
        producer.await_acked(300)
        producer.stop()
    brokers.await_in_sync(topic)
    verify(producer, read_all(brokers.bootstrap, topic, 3), consumer)


def test_a_rolling_restart_costs_clients_no_error_and_little_time(brokers: ThreeBrokers, topic: str) -> None:
    brokers.create_topic(topic, 3)
    with (
        VerifiableConsumer(brokers.bootstrap, topic, 3) as consumer,
        VerifiableProducer(brokers.bootstrap, topic, 3) as producer,
    ):
        producer.await_acked(300)
        for broker_id in ALL:
            brokers.restart(broker_id)
            brokers.await_in_sync(topic)
            producer.await_acked(100)
        producer.stop()
    verify(producer, read_all(brokers.bootstrap, topic, 3), consumer)
    print(f"longest wait in a rolling restart: {producer.longest_wait_seconds():.2f} s")


def test_with_one_of_three_left_nothing_is_accepted_what_was_committed_is_readable_and_it_goes_on_by_itself(
    brokers: ThreeBrokers, topic: str
) -> None:
    """R11, R14: the in-sync set is smaller than ``min.insync.replicas``, which is 2 here."""
    brokers.create_topic(topic)
    left = brokers.leader(topic)
    others = [one for one in ALL if one != left]
    with VerifiableProducer(brokers.bootstrap, topic) as producer:
        producer.await_acked(300)
        brokers.kill(*others)
        brokers.await_in_sync(topic, {left})
        assert error_of_one_try(brokers, topic) == "NOT_ENOUGH_REPLICAS"
        committed = {one.value for one in producer.acked}
        assert committed <= set(read_all(brokers.bootstrap, topic)[topic, 0].values())
        brokers.restart(*others)
        producer.await_acked(300)
        producer.stop()
    verify(producer, read_all(brokers.bootstrap, topic))
    brokers.await_in_sync(topic)


def error_of_one_try(brokers: ThreeBrokers, topic: str) -> str | None:
    """What a producer is told that does not try again."""
    outcome: list[str | None] = []
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "retries": 0, "log_level": 0})
    producer.produce(topic, b"-1", on_delivery=lambda error, _: outcome.append(None if error is None else error.name()))
    producer.flush(WAIT_SECONDS)
    return outcome[0]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with closing(Story(tmp_path / "story")) as story:
        yield story


def test_a_copy_is_exact_while_the_coordinator_of_its_transactions_is_killed(
    brokers: ThreeBrokers, topic: str, story: Story
) -> None:
    source, target = f"{topic}-source", f"{topic}-target"
    brokers.create_topic(source, 2)
    brokers.create_topic(target, 2)
    with (
        VerifiableProducer(brokers.bootstrap, source, 2) as producer,
        Copies(brokers.bootstrap, source, target, A_TRANSACTION, story) as copies,
    ):
        copies.start()
        copies.await_copied(200, WAIT_SECONDS)
        killed = brokers.leader("__transaction_state")
        brokers.kill(killed)
        brokers.restart(killed)
        producer.await_acked(200)
        producer.stop()
        story.within(
            2 * WAIT_SECONDS,
            f"all {producer.sent} records are copied",
            lambda: copies.replaced_if_it_hangs() and copies.copied >= producer.sent,
            lambda: f"{copies.copied} are",
        )
    given, copied = read_all(brokers.bootstrap, source, 2), read_all(brokers.bootstrap, target, 2)
    verify(producer, given)
    for partition in range(2):
        written = [copied_value(value) for value in copied[target, partition].values()]
        assert written == list(given[source, partition].values())
