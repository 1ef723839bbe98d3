"""Clients that go away while something is being done for them."""

import time

from lamina.errors import ErrorCode
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient, batch_of, fetch_request, metadata_request


def test_a_topic_is_made_whole_even_if_the_client_that_wanted_it_has_left(broker: BrokerProcess, topic: str) -> None:
    for number in range(20):
        name = f"{topic}-{number}"
        with RawClient(broker) as leaving:
            leaving.begin(metadata_request(name))
        with RawClient(broker) as staying:
            topic_id = staying.create_topic(name)
            answer = staying.produce(name, batch_of((None, b"v"), now_ms=time.time_ns() // 1_000_000))
            assert answer.error_code == ErrorCode.NONE, "what the metadata tells of is served"
            assert staying.fetch(topic_id, 0).error_code == ErrorCode.NONE


def test_a_waiting_client_that_leaves_is_forgotten(broker: BrokerProcess, raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    before = broker.resident_bytes()
    for _ in range(200):
        with RawClient(broker) as leaving:
            leaving.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=600_000))
    assert raw.produce(topic, batch_of((None, b"v"), now_ms=time.time_ns() // 1_000_000)).error_code == ErrorCode.NONE
    assert broker.resident_bytes() - before < 16 * 1024 * 1024
