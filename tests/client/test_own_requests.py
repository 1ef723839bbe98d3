"""Asking what librdkafka cannot ask, of servers that do not answer as they should."""

from typing import Any

import pytest

from lamina.client.errors import ClientError
from lamina.client.own_requests import ask
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.limits import Limits
from lamina.peer.target import AnyBroker, Controller
from tests.broker.process import BrokerProcess
from tests.client.servers import a_server_that_says

DESCRIBE_CLUSTER = 60


async def describe(peers: ClusterClient) -> Any:
    call = MessageCall(DESCRIBE_CLUSTER, range(2), include_cluster_authorized_operations=False)
    return await peers.request(AnyBroker(), call)


def test_a_broker_answers(broker: BrokerProcess) -> None:
    assert ask(broker.address, "test", {}, Limits(), describe).error_code == 0


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Kafka's protocol"),
        (b"\xff\xff\xff\xff", "does not speak Kafka's protocol"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x00\x00", "ApiVersionsResponse"),
    ],
)
def test_what_is_no_answer_is_told_at_once_in_one_sentence(said: bytes, reason: str) -> None:
    with a_server_that_says(said) as address, pytest.raises(ClientError) as raised:
        ask(address, "test", {}, Limits(), describe)
    sentence = str(raised.value)
    assert sentence.startswith(address)
    assert reason in sentence
    assert sentence.endswith("; look at the broker's log, or try again")
    assert "\n" not in sentence


def test_a_property_that_cannot_be_honoured_is_told_before_anybody_connects() -> None:
    with pytest.raises(ClientError, match=r"^sasl\.mechanism: GSSAPI is not one of"):
        ask("127.0.0.1:1", "test", {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, Limits(), describe)


def test_a_broker_that_is_gone() -> None:
    with pytest.raises(ClientError, match=r"^127.0.0.1:1 cannot be reached \(.*refused.*\).*look at the broker's log"):
        ask("127.0.0.1:1", "test", {}, Limits(api_timeout_ms=1000), describe)


def test_what_a_broker_does_not_offer_is_one_sentence(broker: BrokerProcess) -> None:
    with pytest.raises(ClientError, match="API key 52 is needed in version 0; the broker does not offer it"):
        ask(broker.address, "test", {}, Limits(), lambda peers: peers.request(Controller(), MessageCall(52, range(1))))
