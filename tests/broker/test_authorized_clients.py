"""Clients without and with access rules: each says what it may not do, and goes on once it may."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError as AioDenied
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaProducer
from kafka.errors import TopicAuthorizationFailedError as PythonDenied

from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.group_members import wait_until
from tests.broker.login.logging_in import PASSWORDS, SaslBroker

WAIT_SECONDS = 30.0
ALICE = "User:alice"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SaslBroker]:
    """Bob may do everything, and has made a topic."""
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:bob"}
    started = SaslBroker(tmp_path / "data", settings).start()
    try:
        admin = AdminClient(config(started, "bob"))
        (made,) = admin.create_topics([NewTopic("t", 1)]).values()
        made.result(WAIT_SECONDS)
        yield started
    finally:
        started.stop()


def config(broker: SaslBroker, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": address(broker),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }


def address(broker: SaslBroker) -> str:
    return f"127.0.0.1:{broker.port('SASL_PLAINTEXT')}"


def python_config(broker: SaslBroker) -> dict[str, Any]:
    return {
        "bootstrap_servers": address(broker),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORDS["alice"],
    }


def rule(type_: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(type_, name, ResourcePatternType.LITERAL, ALICE, "*", operation, AclPermissionType.ALLOW)


def allow(broker: SaslBroker, *rules: AclBinding) -> None:
    admin = AdminClient(config(broker, "bob"))
    for made in admin.create_acls(list(rules)).values():
        made.result(WAIT_SECONDS)


def forget(broker: SaslBroker) -> None:
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = AdminClient(config(broker, "bob"))
    for deleted in admin.delete_acls([every]).values():
        deleted.result(WAIT_SECONDS)


def produced(producer: Producer) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    # What it knows of the topic it asks again seldom, once it was denied.
    producer.list_topics("t", WAIT_SECONDS)
    try:
        producer.produce("t", b"v", on_delivery=lambda error, _: errors.append(error))
    except KafkaException as error:
        denied: KafkaError = error.args[0]
        return denied
    assert producer.flush(WAIT_SECONDS) == 0
    return errors[0]


def test_librdkafka_writes_on_once_it_may_and_no_longer_than_that(broker: SaslBroker) -> None:
    producer = Producer(config(broker, "alice") | {"topic.metadata.propagation.max.ms": 0})
    denied = produced(producer)
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(broker, rule(ResourceType.TOPIC, "t", AclOperation.WRITE))
    wait_until(lambda: produced(producer) is None)
    forget(broker)
    denied = produced(producer)
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_librdkafka_reads_with_a_group_that_it_may_use(broker: SaslBroker) -> None:
    allow(broker, rule(ResourceType.TOPIC, "t", AclOperation.ALL))
    assert produced(Producer(config(broker, "alice"))) is None
    consumer = Consumer(config(broker, "alice") | {"group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["t"])
        message = consumer.poll(WAIT_SECONDS)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        allow(broker, rule(ResourceType.GROUP, "g", AclOperation.READ))
        values = [message.value() for message in _without_errors(consumer)]
        assert values == [b"v"]
    finally:
        consumer.close()


def _without_errors(consumer: Consumer) -> Iterator[Any]:
    while True:
        message = consumer.poll(WAIT_SECONDS)
        assert message is not None
        if message.error() is None:
            yield message
            return


def test_librdkafka_makes_no_topic_that_it_may_not(broker: SaslBroker) -> None:
    admin = AdminClient(config(broker, "alice"))
    (made,) = admin.create_topics([NewTopic("mine", 1)]).values()
    with pytest.raises(KafkaException) as denied:
        made.result(WAIT_SECONDS)
    assert denied.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_kafka_python_says_what_it_may_not_do(broker: SaslBroker) -> None:
    allow(broker, rule(ResourceType.TOPIC, "t", AclOperation.DESCRIBE))
    producer = KafkaProducer(**python_config(broker), enable_idempotence=False)
    try:
        with pytest.raises(PythonDenied):
            producer.send("t", b"v").get(WAIT_SECONDS)
        allow(broker, rule(ResourceType.TOPIC, "t", AclOperation.WRITE))
        assert producer.send("t", b"v").get(WAIT_SECONDS).offset == 0
    finally:
        producer.close()


def test_aiokafka_says_what_it_may_not_do(broker: SaslBroker) -> None:
    allow(broker, rule(ResourceType.TOPIC, "t", AclOperation.DESCRIBE))

    async def run() -> int:
        async with AIOKafkaProducer(**python_config(broker)) as producer:
            with pytest.raises(AioDenied):
                await producer.send_and_wait("t", b"v")
            await asyncio.to_thread(allow, broker, rule(ResourceType.TOPIC, "t", AclOperation.WRITE))
            return int((await producer.send_and_wait("t", b"v")).offset)

    assert asyncio.run(run()) == 0
