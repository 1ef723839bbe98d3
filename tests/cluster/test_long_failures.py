"""Three real brokers and failures that are rarer, or take longer: paused, wiped and away at the wrong time."""

import shutil

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import NewTopic

from tests.broker.process import eventually
from tests.cluster.three_brokers import ALL, WAIT_SECONDS, ThreeBrokers
from tests.cluster.verifiable_consumer import read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.cluster.verifying import verify

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

MANY_TOPICS = 400


def produced(brokers: ThreeBrokers, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_SECONDS) == 0


def test_a_leader_that_slept_longer_than_its_session_acknowledges_nothing_that_the_next_one_lacks(
    brokers: ThreeBrokers, topic: str
) -> None:
    brokers.create_topic(topic)
    slept = brokers.leader(topic)
    outcomes: dict[bytes, object] = {}
    hasty = Producer({"bootstrap.servers": brokers.bootstrap, "acks": 1, "retries": 0, "linger.ms": 0, "log_level": 0})

    def send(value: bytes) -> None:
        hasty.produce(topic, value, partition=0, on_delivery=lambda error, _: outcomes.update({value: error}))
        hasty.poll(0)

    with VerifiableProducer(brokers.bootstrap, topic) as producer:
        producer.await_acked(300)
        send(b"1000000")
        hasty.flush(WAIT_SECONDS)
        # It is acknowledged by the leader alone: only what followers have outlives it.
        end = brokers.high_watermark(topic)
        eventually(lambda: brokers.high_watermark(topic) > end + 10)
        brokers.pause(slept)
        # These lie in its socket when it wakes up, and it takes itself for the leader.
        for number in range(20):
            send(b"%d" % (2_000_000 + number))
        other = next(broker_id for broker_id in ALL if broker_id != slept)
        eventually(lambda: brokers.leader_seen_by(other, topic) not in (-1, slept), WAIT_SECONDS)
        brokers.resume(slept)
        assert hasty.flush(WAIT_SECONDS) == 0
        producer.await_acked(300)
        producer.stop()
    brokers.await_in_sync(topic)
    found = read_all(brokers.bootstrap, topic)[topic, 0]
    acked = {value for value, error in outcomes.items() if error is None}
    assert outcomes.keys() == {b"1000000"} | {b"%d" % (2_000_000 + number) for number in range(20)}
    assert acked <= set(found.values())
    verify(producer, {(topic, 0): {offset: value for offset, value in found.items() if value not in outcomes}})
    brokers.assert_replicas_are_equal(topic)


def test_a_broker_that_was_away_while_a_topic_was_made_anew_has_nothing_of_the_old_one(
    brokers: ThreeBrokers, topic: str
) -> None:
    again, gone = f"{topic}-again", f"{topic}-gone"
    for name in (again, gone):
        brokers.create_topic(name)
        produced(brokers, name, *(b"old %d" % number for number in range(50)))
        brokers.await_in_sync(name)
    away = brokers.leader(again)
    left = [broker_id for broker_id in ALL if broker_id != away]
    brokers.kill(away)
    brokers.await_in_sync(again, left)
    for name in (again, gone):
        brokers.delete_topic(name)
    eventually(lambda: not {again, gone} & brokers.topic_names(), WAIT_SECONDS)
    brokers.admin.create_topics([NewTopic(again, 1, 2)])[again].result(WAIT_SECONDS)
    brokers.await_in_sync(again, left)
    new = {b"new %d" % number for number in range(50)}
    produced(brokers, again, *new)
    brokers.restart(away)
    logs = brokers.data(away) / "logs"
    eventually(lambda: not [*logs.glob(f"{again}-*"), *logs.glob(f"{gone}-*"), *logs.glob("*-delete")], WAIT_SECONDS)
    assert set(read_all(brokers.bootstrap, again)[again, 0].values()) == new
    assert brokers.in_sync(again) == [set(left)]


def test_a_broker_whose_disk_was_replaced_gets_its_replicas_back_by_copying(brokers: ThreeBrokers, topic: str) -> None:
    """Under its old id: it may lead again only when it has all that is committed."""
    brokers.create_topic(topic)
    wiped = brokers.leader(topic)
    with VerifiableProducer(brokers.bootstrap, topic) as producer:
        producer.await_acked(300)
        brokers.kill(wiped)
        shutil.rmtree(brokers.data(wiped))
        brokers.restart(wiped)
        brokers.await_in_sync(topic)
        producer.await_acked(300)
        producer.stop()
    verify(producer, read_all(brokers.bootstrap, topic))
    brokers.assert_replicas_are_equal(topic)


def test_no_topic_is_half_made_when_the_controller_is_killed_while_it_makes_many(
    brokers: ThreeBrokers, topic: str
) -> None:
    names = [f"{topic}-{number}" for number in range(MANY_TOPICS)]
    controller = brokers.controller()
    futures = brokers.admin.create_topics([NewTopic(name, 2, 3) for name in names], request_timeout=WAIT_SECONDS)
    brokers.await_stored_topic(f"{topic}-")
    brokers.kill(controller)
    told = {name: future.exception(WAIT_SECONDS) for name, future in futures.items()}
    brokers.restart(controller)
    there = brokers.topic_names() & set(names)
    print(f"{len(there)} of {len(names)} topics were made")
    assert {name for name, error in told.items() if error is None} <= there
    missing = [NewTopic(name, 2, 3) for name in names if name not in there]
    for name, again in brokers.admin.create_topics(missing).items() if missing else ():
        error = again.exception(WAIT_SECONDS)
        # The broker that was asked for names may not have heard of all that were made.
        assert error is None or error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, name
    for name in names:
        brokers.await_in_sync(name)
        assert len(brokers.in_sync(name)) == 2
