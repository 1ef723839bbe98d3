"""Requests of every API and version, several in a row, served by a broker without sockets.

Each gets its answer, or ends its connection in a sentence; none fails in a way that nobody thought of.
"""

from collections.abc import Sequence
from typing import Any

from fuzz.choices import Choices
from fuzz.files import scratch
from fuzz.targets.requests import OFFERED
from lamina.broker.requests.api_table import APIS
from lamina.broker.requests.request import CloseConnection
from lamina.wire.codec import parse_request, parse_response
from lamina.wire.headers import start_request
from lamina.wire.primitives import MalformedRequest
from tests.broker.in_process import CORRELATION_ID, InProcessBroker

TOPIC = "orders"

_FETCH, _CREATE_TOPICS, _CREATE_PARTITIONS = 1, 19, 37
_MOST_REQUESTS = 4
_MOST_PARTITIONS = 20
"""Every partition is a directory: many take long, and show nothing new."""
_WAIT_SECONDS = 0.05
_NAMES = {api.key: api.name for api in APIS}


def one(data: bytes) -> None:
    choices = Choices(data)
    with scratch({}) as root:
        broker = InProcessBroker(root, {"auto.create.topics.enable": "false"})
        try:
            broker.create(TOPIC)
            broker.produce(TOPIC, 3)
            for _ in range(_MOST_REQUESTS):
                if choices.is_over:
                    break
                api_key, api_version = choices.one_of(OFFERED)
                _serve(broker, api_key, api_version, choices.take(choices.number(2)))
        finally:
            broker.close()


def _serve(broker: InProcessBroker, api_key: int, api_version: int, body: bytes) -> None:
    frame = start_request(api_key, api_version, CORRELATION_ID, "fuzz")[4:] + body
    try:
        if _makes_many(api_key, api_version, body):
            return
        answer = broker.serve(frame, _WAIT_SECONDS)
    except (MalformedRequest, CloseConnection):
        return
    assert broker.parts.counters.unexpected.total() == 0, f"{_NAMES[api_key]} version {api_version} failed"
    if (
        answer is not None and api_key != _FETCH
    ):  # a Fetch answer holds records, which the schema's reader takes as bytes
        correlation_id, _ = parse_response(api_key, api_version, answer[4:])
        assert correlation_id == CORRELATION_ID


def _makes_many(api_key: int, api_version: int, body: bytes) -> bool:
    if api_key not in (_CREATE_TOPICS, _CREATE_PARTITIONS):
        return False
    topics: Sequence[Any] = parse_request(api_key, api_version, body).topics
    asked = (topic.num_partitions if api_key == _CREATE_TOPICS else topic.count for topic in topics)
    return len(topics) > _MOST_PARTITIONS or any(count > _MOST_PARTITIONS for count in asked)
