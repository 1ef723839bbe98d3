"""Quotas as real clients and connections meet them."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent

from lamina.wire.versions import request_schema
from tests.broker.in_process import build
from tests.broker.login.logging_in import PASSWORDS, LoginClient, SaslBroker
from tests.broker.process import BrokerProcess
from tests.broker.quotas import alter
from tests.broker.raw import Closed, RawClient, batch_of, metadata_request, produce_request

ANYBODY = {"user": None}


class Asking:
    """A raw client, asked by numbers and facts."""

    def __init__(self, client: RawClient) -> None:
        self._client = client

    def ask(self, api_key: int, api_version: int, **facts: Any) -> Any:
        return self._client.ask(build(request_schema(api_key, api_version), facts))


def limit(broker: BrokerProcess, entity: Mapping[str, str | None], **quotas: float | None) -> None:
    with RawClient(broker) as client:
        alter(Asking(client), entity, version=1, **quotas)


def test_librdkafka_is_told_that_it_produces_too_fast(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    limit(broker, ANYBODY, producer_byte_rate=100_000.0)
    told: list[ThrottleEvent] = []
    producer = Producer(
        {"bootstrap.servers": broker.address, "throttle_cb": told.append, "compression.type": "none", "linger.ms": 50}
    )
    for _ in range(105):
        producer.produce("t", bytes(10_000))
    assert producer.flush(30) == 0
    while not told:
        producer.poll(0.1)
    assert 0 < max(event.throttle_time for event in told) < 2


def test_librdkafka_is_told_that_it_consumes_too_fast_and_gets_everything(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    """Within a window of one second, so that the test is short."""
    broker = own_broker("--set", "quota.window.num=2")
    producer = Producer({"bootstrap.servers": broker.address, "compression.type": "none"})
    for number in range(30):
        producer.produce("t", bytes(10_000), key=str(number))
    assert producer.flush(30) == 0
    limit(broker, {"client-id": "slow"}, consumer_byte_rate=100_000.0)
    told: list[ThrottleEvent] = []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "client.id": "slow",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "throttle_cb": told.append,
        }
    )
    consumer.subscribe(["t"])
    keys: list[bytes | None] = []
    while len(keys) < 30:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            keys.append(message.key())
    assert keys == [str(number).encode() for number in range(30)]
    while not told:
        consumer.poll(0.1)
    consumer.close()


def test_a_client_that_does_not_wait_by_itself_is_muted(own_broker: Callable[..., BrokerProcess]) -> None:
    """S63: with acks=0 it is told nothing, and its next request is answered later all the same."""
    broker = own_broker()
    with RawClient(broker) as client, RawClient(broker) as other:
        client.ask(metadata_request("t"))
        limit(broker, ANYBODY, producer_byte_rate=100_000.0)
        began, now_ms = time.monotonic(), int(time.time() * 1000)
        client.begin(produce_request("t", batch_of((b"", bytes(1_040_000)), now_ms=now_ms), acks=0))
        client.begin(metadata_request(create=False))
        assert client.answer(3, 12).brokers
        assert time.monotonic() - began >= 0.4
        assert other.ask(metadata_request(create=False)).brokers


def test_an_address_above_its_rate_is_turned_away(own_broker: Callable[..., BrokerProcess]) -> None:
    """S66."""
    broker = own_broker()
    limit(broker, {"ip": "127.0.0.1"}, connection_creation_rate=1.0)
    refused = 0
    for _ in range(15):
        with RawClient(broker) as client:
            try:
                client.ask(metadata_request(create=False))
            except (Closed, BrokenPipeError):
                refused += 1
    assert refused >= 3
    broker.wait_for_log("127.0.0.1 was turned away: its connection_creation_rate is reached")


@pytest.mark.parametrize("entity", [{"ip": None}, {"ip": "127.0.0.1"}])
def test_other_addresses_come_and_a_limit_that_is_removed_holds_no_more(
    own_broker: Callable[..., BrokerProcess], entity: dict[str, str | None]
) -> None:
    broker = own_broker()
    with RawClient(broker) as client:
        alter(Asking(client), entity, connection_creation_rate=1.0)
        alter(Asking(client), entity, connection_creation_rate=None)
    for _ in range(15):
        with RawClient(broker) as client:
            assert client.ask(metadata_request(create=False)).brokers


def test_a_user_is_throttled_once_it_has_logged_in_and_strangers_have_no_quota(tmp_path: Path) -> None:
    """A stranger that uses up what nobody may have would else keep users from logging in."""
    running = SaslBroker(tmp_path, {}).start()
    try:
        with LoginClient(running) as alice, LoginClient(running) as bob:
            bob.log_in("PLAIN", "bob", PASSWORDS["bob"])
            alter(Asking(bob), ANYBODY, request_percentage=0.000_001)
            alter(Asking(bob), {"user": "bob"}, request_percentage=1_000_000.0)
            throttled = running.parts.counters.quotas.throttled
            before = throttled.total()
            alice.versions()
            assert alice.log_in("SCRAM-SHA-256").error_code == 0
            assert throttled.total() == before
            assert alice.ask(metadata_request(create=False)).throttle_time.total_seconds() == 1
            assert bob.ask(metadata_request(create=False)).throttle_time.total_seconds() == 0
    finally:
        running.stop()
