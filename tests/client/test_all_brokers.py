"""Asking what librdkafka cannot ask, of servers that do not answer as they should."""

import pytest

from lamina.client.all_brokers import alter_defaults, describe_defaults
from lamina.client.errors import ClientError
from tests.client.servers import a_server_that_says


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "it hung up"),
        (b"\x00\x00\x00\x09abc", "it hung up"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Kafka's protocol"),
        (b"\xff\xff\xff\xff", "does not speak Kafka's protocol"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x01\x00", "DescribeConfigsResponse"),
    ],
)
def test_what_is_no_answer_is_one_sentence(answer: bytes, reason: str) -> None:
    with a_server_that_says(answer) as address:
        host, _, port = address.partition(":")
        with pytest.raises(ClientError, match=rf"^{address} gave no answer \(.*{reason}.*\); look at the broker's log"):
            describe_defaults((host, int(port)))


def test_a_broker_that_is_gone() -> None:
    with pytest.raises(ClientError, match="refused"):
        alter_defaults(("127.0.0.1", 1), {"log.retention.ms": None})
