"""The error codes of Kafka 4.1 for what a broker refuses, to the letter (protocol.md §2.35)."""

import time
from uuid import uuid4

import pytest

from lamina.errors import ErrorCode
from lamina.records.batch import Codec
from tests.broker.process import BrokerProcess
from tests.broker.raw import Closed, RawClient, batch_of, fetch_request, metadata_request, produce_request

DAY_MS = 86_400_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def one(value: bytes | None = b"value") -> bytes:
    return batch_of((b"key", value), now_ms=now_ms())


def test_a_batch_whose_crc_is_wrong_is_corrupt(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    batch = bytearray(one())
    batch[-1] ^= 1
    assert raw.produce(topic, bytes(batch)).error_code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_beyond_max_message_bytes_is_too_large(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    assert raw.produce(topic, one(bytes(1_048_600))).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_each_bad_record_is_named(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    future = batch_of((None, b"a"), (None, b"b"), now_ms=now_ms() + 2 * 3_600_000)
    answer = raw.produce(topic, future)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.error_message


def test_a_batch_that_counts_wrong_is_an_invalid_record(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    assert raw.produce(topic, None).error_code == ErrorCode.INVALID_RECORD
    assert raw.produce(topic, one() + one()).error_code == ErrorCode.INVALID_RECORD
    assert raw.produce(topic, b"").error_code == ErrorCode.INVALID_RECORD


def test_a_topic_that_is_not_there(raw: RawClient) -> None:
    assert raw.produce("nowhere", one()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert raw.fetch("nowhere", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert raw.fetch(uuid4(), 0).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert raw.list_offset("nowhere", -1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = raw.ask(metadata_request("nowhere", create=False)).topics[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_is_not_there(raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    assert raw.produce(topic, one(), partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert raw.fetch(topic_id, 0, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert raw.fetch(topic_id, 0, partition=-1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", "a b", ".", "..", "x" * 250, "ü"])
def test_a_name_that_no_topic_may_have(raw: RawClient, name: str) -> None:
    assert raw.ask(metadata_request(name)).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_differ_only_in_dots_and_underscores_collide(raw: RawClient, topic: str) -> None:
    raw.create_topic(f"{topic}.a")
    answer = raw.ask(metadata_request(f"{topic}_a")).topics[0]
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_an_offset_outside_the_log(raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    raw.produce(topic, one())
    assert raw.fetch(topic_id, 1).error_code == ErrorCode.NONE
    assert raw.fetch(topic_id, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert raw.fetch(topic_id, -1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_client_with_another_leader_epoch(raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    epoch = raw.ask(metadata_request(topic)).topics[0].partitions[0].leader_epoch
    assert raw.fetch(topic_id, 0, leader_epoch=epoch).error_code == ErrorCode.NONE
    assert raw.fetch(topic_id, 0, leader_epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert raw.list_offset(topic, -1, leader_epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_acks_other_than_three_values(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    assert raw.produce(topic, one(), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert raw.produce(topic, one(), acks=1).error_code == ErrorCode.NONE


def test_an_error_without_an_answer_closes_the_connection(raw: RawClient, topic: str, broker: BrokerProcess) -> None:
    raw.create_topic(topic)
    raw.begin(produce_request(topic, one(), acks=0))
    assert raw.list_offset(topic, -1).offset == 1, "what is right gets no answer"
    raw.begin(produce_request(f"{topic}-nowhere", one(), acks=0))
    with pytest.raises(Closed):
        raw.receive_frame()
    # Not looked for by the peer alone: other tests ask this broker too, and a port may have been theirs before.
    assert raw.peer in broker.wait_for_log(f"a batch for {topic}-nowhere-0 sent with acks=0 was refused")


def test_zstd_needs_a_producer_that_may_know_it(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    batch = batch_of((None, b"x" * 200), now_ms=now_ms(), codec=Codec.ZSTD)
    answer = raw.ask(produce_request(topic, batch, version=6)).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_sequences_are_watched_and_duplicates_get_their_first_offset(raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    at = now_ms()

    def send(sequence: int, epoch: int = 0) -> tuple[int, int]:
        batch = batch_of((None, b"v"), now_ms=at, producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        answer = raw.produce(topic, batch)
        return answer.error_code, answer.base_offset

    assert send(0) == (ErrorCode.NONE, 0)
    assert send(1) == (ErrorCode.NONE, 1)
    assert send(0) == (ErrorCode.NONE, 0), "a duplicate"
    assert send(5) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(0, epoch=1) == (ErrorCode.NONE, 2)
    assert send(2) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def test_a_session_that_is_not_there_and_one_with_another_epoch(raw: RawClient, topic: str) -> None:
    topic_id = raw.create_topic(topic)
    gone = raw.ask(fetch_request([], session_id=12345, session_epoch=3))
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    begun = raw.ask(fetch_request([(topic_id, [(0, 0)])], session_epoch=0))
    assert begun.session_id != 0
    wrong = raw.ask(fetch_request([], session_id=begun.session_id, session_epoch=7))
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
