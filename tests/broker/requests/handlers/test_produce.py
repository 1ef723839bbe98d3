import itertools
import threading
from typing import Any
from uuid import UUID

import pytest

from lamina.broker.partitions.partition import Partition
from lamina.broker.requests.handlers import produce
from lamina.errors import ErrorCode, StorageError
from lamina.records.batch import Codec
from lamina.records.prepare import PreparedBatch, prepare_batch
from lamina.records.record import Record, build_batch
from lamina.wire.produce import encode_produce_response
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker, batch_of, counted_turns


def produce_to(broker: InProcessBroker, partitions: int) -> Any:
    data = [{"index": index, "records": batch_of(broker, index + 1)} for index in range(partitions)]
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": "t", "partition_data": data}])
    return response.responses[0].partition_responses


@pytest.mark.parametrize("partitions", [1, 8, 9, 100])
def test_every_partition_of_a_request_gets_its_batch_and_its_answer_in_order(
    broker: InProcessBroker, partitions: int
) -> None:
    broker.create("t", partitions)
    assert [(one.index, one.base_offset) for one in produce_to(broker, partitions)] == [
        (index, 0) for index in range(partitions)
    ]
    ends = [broker.parts.partitions.get("t", index).log.log_end_offset for index in range(partitions)]
    assert ends == [index + 1 for index in range(partitions)]
    assert [one.base_offset for one in produce_to(broker, partitions)] == ends


def test_a_request_for_many_partitions_leaves_the_loop_to_others_in_between(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t", 100)
    turns = counted_turns(monkeypatch)
    produce_to(broker, 100)
    assert turns == [0] * 12


def send(broker: InProcessBroker, *batches: bytes) -> list[Any]:
    """One request with a batch for each partition of t, from the first on."""
    data = [{"index": index, "records": batch} for index, batch in enumerate(batches)]
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": "t", "partition_data": data}])
    return list(response.responses[0].partition_responses)


def batch_in(codec: Codec, broker: InProcessBroker, count: int, value: bytes) -> bytes:
    now_ms = broker.parts.clocks.now_ms()
    return bytes(build_batch([Record(number, now_ms, b"k", value) for number in range(count)], codec=codec))


class Watched:
    """Where batches are prepared: on the loop's thread or on another. Raises what is asked of it first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on_loop: list[bool] = []
        self.failing: list[Exception] = []
        monkeypatch.setattr(produce, "prepare_batch", self)

    def __call__(self, *given: Any) -> PreparedBatch:
        self.on_loop.append(threading.current_thread() is threading.main_thread())
        if self.failing:
            raise self.failing.pop()
        return prepare_batch(*given)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.mark.parametrize(
    ("codec", "count", "value_bytes", "on_loop"),
    [
        (Codec.NONE, 1, 100, True),
        (Codec.NONE, 1, 100_000, True),
        (Codec.NONE, 2000, 1, True),
        (Codec.NONE, 2001, 1, False),
        (Codec.ZSTD, 2000, 1, True),
        (Codec.ZSTD, 2001, 1, False),
    ],
)
def test_a_batch_of_many_records_is_no_work_for_the_loop_whatever_its_size(
    broker: InProcessBroker, watched: Watched, codec: Codec, count: int, value_bytes: int, on_loop: bool
) -> None:
    broker.create("t")
    [answer] = send(broker, batch_in(codec, broker, count, bytes(value_bytes)))
    assert answer.error_code == ErrorCode.NONE
    assert watched.on_loop == [on_loop]


@pytest.mark.parametrize(
    ("codec", "value_bytes", "on_loop"),
    [(Codec.LZ4, 100_000, True), (Codec.ZSTD, 100_000, False), (Codec.NONE, 100_000, False), (Codec.NONE, 100, True)],
)
def test_a_large_batch_is_compressed_anew_on_a_thread(
    broker: InProcessBroker, watched: Watched, codec: Codec, value_bytes: int, on_loop: bool
) -> None:
    broker.create("t", compression_type="lz4")
    [answer] = send(broker, batch_in(codec, broker, 1, bytes(value_bytes)))
    assert answer.error_code == ErrorCode.NONE
    assert watched.on_loop == [on_loop]


@pytest.mark.parametrize(("level", "on_loop"), [("3", True), ("22", False)])
def test_a_small_batch_is_compressed_on_a_thread_when_its_topic_wants_it_done_well(
    broker: InProcessBroker, watched: Watched, level: str, on_loop: bool
) -> None:
    broker.create("t", compression_type="zstd", compression_zstd_level=level)
    [answer] = send(broker, batch_in(Codec.NONE, broker, 1, bytes(100)))
    assert answer.error_code == ErrorCode.NONE
    assert watched.on_loop == [on_loop]


def test_a_batch_that_is_too_large_in_the_codec_of_its_topic_is_refused(broker: InProcessBroker) -> None:
    broker.create("t", compression_type="uncompressed", max_message_bytes="5000")
    [answer] = send(broker, batch_in(Codec.ZSTD, broker, 1, bytes(10_000)))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0


@pytest.mark.parametrize("count", [1, 2001])
def test_an_unexpected_error_over_a_clients_bytes_is_one_partitions_and_leaves_it_online(
    broker: InProcessBroker, watched: Watched, count: int
) -> None:
    broker.create("t", 2)
    watched.failing = [RuntimeError("a test")]
    batch = batch_in(Codec.NONE, broker, count, b"v")
    answers = send(broker, batch, batch)
    assert [answer.error_code for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
    assert broker.parts.counters.unexpected.total() == 1
    assert [answer.error_code for answer in send(broker, batch)] == [ErrorCode.NONE], "still online"


def test_an_unexpected_error_while_appending_takes_the_partition_offline(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t", 2)
    log = broker.parts.partitions.get("t", 0).log

    def fail(*_given: Any) -> None:
        raise RuntimeError("a test")

    monkeypatch.setattr(log, "append", fail)
    batch = batch_of(broker, 1)
    answers = send(broker, batch, batch)
    assert [answer.error_code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert log.failure is not None


def test_the_kernel_is_asked_for_by_what_a_header_claims(
    broker: InProcessBroker, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by many of them: a backlog after an election is no reason to hold up the loop for a second."""
    broker.create("t")
    begun: list[int] = []
    monkeypatch.setattr("lamina.broker.requests.kernel_loading.WORTH_RECORDS", 64)
    monkeypatch.setattr(broker.parts.kernel_loading, "begin", lambda: begun.append(len(watched.on_loop)))
    for count in (31, 31, 31, 32):
        send(broker, batch_of(broker, count))
    assert begun == []
    send(broker, batch_of(broker, 32))
    assert begun == [4], "before the last batch was prepared"


def test_min_insync_replicas_above_the_replicas_of_a_topic_asks_for_all_of_them(broker: InProcessBroker) -> None:
    """Kafka caps it: one replica cannot be two, and acks=all should not be impossible."""
    broker.create("t", min_insync_replicas="2")
    [answer] = send(broker, batch_of(broker, 1))
    assert answer.error_code == ErrorCode.NONE


BY_ID = 13


def produce_by_id(broker: InProcessBroker, *topics: tuple[UUID, bytes], **facts: Any) -> list[Any]:
    """The answers for partition 0 of each topic."""
    data = [{"topic_id": topic_id, "partition_data": [{"index": 0, "records": batch}]} for topic_id, batch in topics]
    response = broker.ask(PRODUCE, BY_ID, acks=-1, topic_data=data, **facts)
    assert [one.topic_id for one in response.responses] == [topic_id for topic_id, _ in topics]
    return [one.partition_responses[0] for one in response.responses]


@pytest.mark.parametrize("count", [1, 2001], ids=["on the loop", "on a thread"])
def test_a_batch_goes_to_the_topic_with_the_id(broker: InProcessBroker, count: int) -> None:
    broker.create("t")
    broker.create("u")
    t, u = (broker.parts.partitions.get(name, 0) for name in ("t", "u"))
    (told,) = produce_by_id(broker, (u.topic_id, batch_of(broker, count)))
    assert (told.error_code, told.base_offset) == (ErrorCode.NONE, 0)
    assert (t.log.log_end_offset, u.log.log_end_offset) == (0, count)


def test_an_id_that_no_topic_has_is_unknown_and_the_others_get_their_batches(broker: InProcessBroker) -> None:
    broker.create("t")
    batch = batch_of(broker, 3)
    topic_id = broker.parts.partitions.get("t", 0).topic_id
    unknown, known = produce_by_id(broker, (UUID(int=7), batch), (topic_id, batch))
    assert (unknown.error_code, unknown.base_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
    assert (known.error_code, known.base_offset) == (ErrorCode.NONE, 0)


def test_the_id_of_a_topic_that_was_deleted_is_not_that_of_its_successor(broker: InProcessBroker) -> None:
    broker.create("t")
    old_id = broker.parts.partitions.get("t", 0).topic_id
    broker.delete("t")
    broker.create("t")
    (told,) = produce_by_id(broker, (old_id, batch_of(broker, 1)))
    assert told.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0


def test_a_topic_that_is_replaced_while_its_batch_is_prepared_does_not_get_it(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t")
    old_id = broker.parts.partitions.get("t", 0).topic_id
    began, may_go_on = threading.Event(), threading.Event()

    def prepare_later(*arguments: Any) -> PreparedBatch:
        began.set()
        assert may_go_on.wait(30)
        return prepare_batch(*arguments)

    monkeypatch.setattr(produce, "prepare_batch", prepare_later)
    batch = batch_of(broker, 2001)
    data = [{"topic_id": old_id, "partition_data": [{"index": 0, "records": batch}]}]
    begun = broker.begin(PRODUCE, BY_ID, acks=-1, topic_data=data)
    broker.run_until(began.is_set)
    broker.delete("t")
    broker.create("t")
    may_go_on.set()
    (topic,) = broker.finish(begun).responses
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0


# Many partitions


@pytest.fixture
def encoded_on(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads on which responses are encoded. Three partitions are many."""
    monkeypatch.setattr(produce, "_MANY_PARTITIONS", 2)
    threads: list[threading.Thread] = []

    def spied(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return encode_produce_response(*given)

    monkeypatch.setattr(produce, "encode_produce_response", spied)
    return threads


def test_the_response_of_many_partitions_is_encoded_on_a_thread(
    broker: InProcessBroker, encoded_on: list[threading.Thread]
) -> None:
    broker.create("t", 4)
    assert [one.base_offset for one in produce_to(broker, 3)] == [0, 0, 0]
    assert [one.base_offset for one in produce_to(broker, 2)] == [1, 2]
    assert [thread is threading.current_thread() for thread in encoded_on] == [False, True]


@pytest.mark.parametrize("is_in_transaction", [False, True])
def test_many_topics_are_looked_up_in_turns(
    broker: InProcessBroker,
    encoded_on: list[threading.Thread],
    monkeypatch: pytest.MonkeyPatch,
    is_in_transaction: bool,
) -> None:
    topics = [
        {"topic_id": UUID(int=number + 1), "partition_data": [{"index": 0, "records": batch_of(broker, 1)}]}
        for number in range(7)
    ]
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    transactional_id = "tx" if is_in_transaction else None
    answer = broker.ask(PRODUCE, 13, acks=-1, transactional_id=transactional_id, topic_data=topics)
    codes = [partition.error_code for topic in answer.responses for partition in topic.partition_responses]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_ID] * 7
    assert len(turns) == 7 + 7 * is_in_transaction
    assert threading.current_thread() not in encoded_on


def test_why_many_batches_are_not_committed_is_told_in_turns(
    broker: InProcessBroker, encoded_on: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("t", 7)

    async def failing(appended: Any, *_: Any, **__: Any) -> Any:
        return {(partition.topic, partition.index): StorageError("gone") for partition, _ in appended}

    monkeypatch.setattr(produce, "all_committed", failing)
    monkeypatch.setattr(Partition, "is_committed", lambda _: False)
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    assert [one.error_code for one in produce_to(broker, 7)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 7
    assert len(turns) == 7
    assert encoded_on != [threading.current_thread()]
