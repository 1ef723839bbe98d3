"""Log directories that fail while the broker runs, and readers of files that are taken away."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient

from lamina.errors import ErrorCode
from tests.broker.process import BrokerProcess
from tests.broker.raw import FETCH, FETCH_VERSION, RawClient, batch_of, fetch_request, metadata_request


def one(value: bytes = b"value") -> bytes:
    return batch_of((b"key", value), now_ms=time.time_ns() // 1_000_000)


def test_one_directory_of_two_goes_offline_and_the_other_works_on(
    own_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    places = {name: tmp_path / name for name in ("one", "two")}
    broker = own_broker("--set", f"log.dirs={places['one']},{places['two']}", "--set", "num.partitions=2")
    with RawClient(broker) as client, RawClient(broker) as waiting:
        topic_id = client.create_topic("t")
        lost = 0 if (places["one"] / "t-0").is_dir() else 1
        for index in range(2):
            assert client.produce("t", one(), partition=index).error_code == ErrorCode.NONE
        waiting.begin(fetch_request([(topic_id, [(lost, 1)])], max_wait_ms=60_000))
        shutil.move(places["one"], tmp_path / "elsewhere")
        places["one"].write_bytes(b"")
        client.ask(metadata_request("another"))
        broker.wait_for_log("is offline")
        assert client.produce("t", one(), partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch(topic_id, 0, partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        told = waiting.answer(FETCH, FETCH_VERSION).responses[0].partitions[0]
        assert told.error_code == ErrorCode.KAFKA_STORAGE_ERROR, "who waited is told"
        assert client.produce("t", one(), partition=1 - lost).error_code == ErrorCode.NONE
        assert client.fetch(topic_id, 0, partition=1 - lost).error_code == ErrorCode.NONE
    assert not [line for line in broker.log if "Traceback" in line], broker.log


def test_a_slow_reader_gets_all_of_an_answer_whose_topic_is_deleted(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    batches = [one(bytes([number]) * 900_000) for number in range(10)]
    with RawClient(broker) as slow, RawClient(broker) as other:
        topic_id = other.create_topic(topic)
        for batch in batches:
            assert other.produce(topic, batch).error_code == ErrorCode.NONE
        request = fetch_request([(topic_id, [(0, 0)])], partition_max_bytes=1 << 26)
        slow.begin(request)
        other.ask(metadata_request())
        admin.delete_topics([topic])[topic].result(30)
        records = slow.answer(FETCH, FETCH_VERSION).responses[0].partitions[0].records
        assert len(records) == sum(map(len, batches))
