"""Kafka's producer properties mean what they mean to Java's client, or are refused by name."""

import pytest

from lamina.peer.producing import ACKS_ALL
from lamina.producing.errors import WriteError
from lamina.producing.properties import DEFAULT_TRANSACTION_TIMEOUT_MS, BatchFormat, parse_producer_properties
from lamina.records.batch import Codec


def test_without_any_a_producer_is_idempotent_and_waits_for_all_replicas() -> None:
    found = parse_producer_properties({}, is_transactional=True)
    assert found.is_idempotent
    assert found.limits.acks == ACKS_ALL
    assert found.batch_format == BatchFormat()
    assert found.transaction_timeout_ms == DEFAULT_TRANSACTION_TIMEOUT_MS


def test_each_is_honoured() -> None:
    given = {
        "acks": "1",
        "batch.size": "1000",
        "buffer.memory": "2000",
        "compression.type": "zstd",
        "compression.zstd.level": "7",
        "delivery.timeout.ms": "3000",
        "max.request.size": "4000",
        "request.timeout.ms": "5000",
        "transaction.timeout.ms": "6000",
    }
    found = parse_producer_properties(given, is_transactional=False)
    limits = found.limits
    assert found.batch_format == BatchFormat(1000, Codec.ZSTD, 7)
    assert (limits.buffer_bytes, limits.delivery_timeout_ms, limits.max_request_bytes) == (2000, 3000, 4000)
    assert (limits.request_timeout_ms, limits.acks) == (5000, 1)
    assert found.transaction_timeout_ms == 6000
    assert not found.is_idempotent


def test_a_level_of_another_codec_means_nothing() -> None:
    given = {"compression.type": "snappy", "compression.zstd.level": "7"}
    assert parse_producer_properties(given, is_transactional=False).batch_format.level is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"acks": "0"}, "acks: '0' is not one of all, -1, 1"),
        ({"batch.size": "many"}, "batch.size: 'many' is not a whole number"),
        ({"batch.size": "0"}, "batch.size: 0 is not between 1 and 67108864"),
        ({"compression.type": "brotli"}, "compression.type: 'brotli' is not one of none, gzip, snappy, lz4, zstd"),
        ({"compression.type": "gzip", "compression.gzip.level": "10"}, "compression.gzip.level: 10 is not between"),
        ({"enable.idempotence": "true", "acks": "1"}, "acks: enable.idempotence=true needs acks=all"),
        ({"transactional.id": "mine"}, "transactional.id cannot be set: each attempt at a task has one of its own"),
    ],
)
def test_what_cannot_be_honoured_is_one_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(WriteError, match=f"^{sentence}"):
        parse_producer_properties(given, is_transactional=False)


@pytest.mark.parametrize("given", [{"acks": "1"}, {"enable.idempotence": "false"}])
def test_writing_once_needs_all_replicas_and_idempotence(given: dict[str, str]) -> None:
    with pytest.raises(WriteError, match="writing exactly once needs"):
        parse_producer_properties(given, is_transactional=True)
