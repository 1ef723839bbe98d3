"""Fetch as a consumer meets it: long polls, sessions, several requests at once."""

import time

from lamina.records.batch import walk
from tests.broker.process import BrokerProcess
from tests.broker.raw import BEYOND_PATIENCE_MS, FETCH, FETCH_VERSION, RawClient, batch_of, fetch_request


def one(value: bytes = b"value") -> bytes:
    return batch_of((b"key", value), now_ms=time.time_ns() // 1_000_000)


def test_a_long_poll_wakes_at_once(broker: BrokerProcess, raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    with RawClient(broker) as consumer:
        consumer.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=BEYOND_PATIENCE_MS))
        raw.produce(topic, one())
        answer = consumer.answer(FETCH, FETCH_VERSION).responses[0].partitions[0]
        assert answer.high_watermark == 1
        assert answer.records


def test_a_long_poll_waits_for_min_bytes_and_ends_with_max_wait(
    broker: BrokerProcess, raw: RawClient, topic: str
) -> None:
    topic_id = raw.create_topic(topic)
    batch = one()
    raw.produce(topic, batch)
    began = time.monotonic()
    answer = raw.fetch(topic_id, 0, max_wait_ms=300, min_bytes=len(batch) + 1)
    assert time.monotonic() - began >= 0.29
    assert len(answer.records) == len(batch)
    with RawClient(broker) as consumer:
        consumer.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=len(batch) + 1))
        raw.produce(topic, batch)
        assert len(consumer.answer(FETCH, FETCH_VERSION).responses[0].partitions[0].records) == 2 * len(batch)


def test_fetches_that_come_together_are_all_answered(raw: RawClient, topic: str) -> None:
    """An answer made of a file's range goes out alone; the requests behind it are served after it."""
    topic_id = raw.create_topic(topic)
    batch = one(bytes(200_000))
    raw.produce(topic, batch)
    for size in (200_000, 10):
        raw.produce(topic, one(bytes(size)))
    requests = 6
    for number in range(requests):
        raw.begin(fetch_request([(topic_id, [(0, number % 3)])]))
    for number in range(requests):
        answer = raw.answer(FETCH, FETCH_VERSION).responses[0].partitions[0]
        assert next(walk(answer.records))[1].base_offset == number % 3


def test_the_first_batch_comes_whole_whatever_the_limits_are(raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    batch = one(bytes(5000))
    raw.produce(topic, batch)
    raw.produce(topic, batch)
    assert len(raw.fetch(topic_id, 0, max_bytes=10).records) == len(batch)


def test_times_are_looked_up(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    first_ms = time.time_ns() // 1_000_000 - 100_000
    for number in range(10):
        raw.produce(topic, batch_of((None, b"v"), now_ms=first_ms + 1000 * number))
    found = raw.list_offset(topic, first_ms + 3500)
    assert (found.offset, found.timestamp) == (4, first_ms + 4000)
    assert raw.list_offset(topic, first_ms + 50_000).offset == -1
    assert raw.list_offset(topic, -1).offset == 10
    assert raw.list_offset(topic, -2).offset == 0
    assert raw.list_offset(topic, -3).offset == 9
