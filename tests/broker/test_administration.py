"""Administration with a client's admin API, and what it means for those who write and read."""

import time
from uuid import UUID

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import KafkaAdminClient

from lamina.errors import ErrorCode
from lamina.records.batch import Codec, read_header
from tests.broker.process import BrokerProcess
from tests.broker.raw import (
    BEYOND_PATIENCE_MS,
    FETCH,
    FETCH_VERSION,
    RawClient,
    batch_of,
    fetch_request,
    metadata_request,
)

WAIT_SECONDS = 30.0


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def one(value: bytes | None = b"value", key: bytes | None = b"key") -> bytes:
    return batch_of((key, value), now_ms=now_ms())


def create(admin: AdminClient, topic: str, partitions: int = 1, **configs: str) -> None:
    wanted = NewTopic(topic, partitions, 1, config={name.replace("_", "."): text for name, text in configs.items()})
    admin.create_topics([wanted])[topic].result(WAIT_SECONDS)


def alter(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)


def topic_id(client: RawClient, topic: str) -> UUID:
    found = client.ask(metadata_request(topic, create=False)).topics[0].topic_id
    assert isinstance(found, UUID)
    return found


def test_a_topic_made_again_has_another_id_and_nothing_of_the_old_one(
    admin: AdminClient, raw: RawClient, topic: str
) -> None:
    create(admin, topic)
    raw.produce(topic, one())
    old = topic_id(raw, topic)
    admin.delete_topics([topic])[topic].result(WAIT_SECONDS)
    assert raw.produce(topic, one()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert raw.fetch(old, 0).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    create(admin, topic)
    new = topic_id(raw, topic)
    assert new != old
    assert raw.fetch(old, 0).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert raw.fetch(new, 0).high_watermark == 0
    assert raw.produce(topic, one()).base_offset == 0


def test_a_deleted_topic_wakes_who_waits_for_it(
    broker: BrokerProcess, admin: AdminClient, raw: RawClient, topic: str
) -> None:
    create(admin, topic)
    with RawClient(broker) as consumer:
        consumer.begin(fetch_request([(topic_id(raw, topic), [(0, 0)])], max_wait_ms=BEYOND_PATIENCE_MS))
        admin.delete_topics([topic])[topic].result(WAIT_SECONDS)
        answer = consumer.answer(FETCH, FETCH_VERSION).responses[0].partitions[0]
    assert answer.error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_configs_hold_from_the_next_batch_on(admin: AdminClient, raw: RawClient, topic: str) -> None:
    create(admin, topic, max_message_bytes="1000")
    assert raw.produce(topic, one(bytes(2000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    alter(admin, topic, "max.message.bytes", "5000")
    assert raw.produce(topic, one(bytes(2000))).error_code == ErrorCode.NONE
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described = admin.describe_configs([resource])[resource].result(WAIT_SECONDS)
    assert described["max.message.bytes"].value == "5000"
    assert described["retention.ms"].is_default


def test_a_compacted_topic_takes_no_record_without_a_key(admin: AdminClient, raw: RawClient, topic: str) -> None:
    create(admin, topic, cleanup_policy="compact")
    answer = raw.produce(topic, batch_of((b"k", b"v"), (None, b"v"), (b"k", b"v"), now_ms=now_ms()))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert raw.produce(topic, one()).error_code == ErrorCode.NONE


def test_a_topic_may_stamp_its_own_time(admin: AdminClient, raw: RawClient, topic: str) -> None:
    create(admin, topic, message_timestamp_type="LogAppendTime")
    before_ms = now_ms()
    answer = raw.produce(topic, batch_of((None, b"v"), now_ms=12345))
    assert answer.error_code == ErrorCode.NONE
    header = read_header(raw.fetch(topic, 0).records)
    assert header.is_log_append_time
    assert before_ms <= header.max_timestamp <= now_ms()
    assert raw.list_offset(topic, before_ms).offset == 0


@pytest.mark.parametrize(("kind", "codec"), [("gzip", Codec.GZIP), ("zstd", Codec.ZSTD), ("uncompressed", Codec.NONE)])
def test_a_topic_may_have_a_codec_of_its_own(
    admin: AdminClient, raw: RawClient, topic: str, kind: str, codec: Codec
) -> None:
    create(admin, topic, compression_type=kind)
    for sent in (Codec.NONE, Codec.LZ4):
        batch = batch_of((b"k", b"v" * 500), now_ms=now_ms(), codec=sent)
        assert raw.produce(topic, batch).error_code == ErrorCode.NONE
    assert read_header(raw.fetch(topic, 0).records).codec_id == codec
    assert read_header(raw.fetch(topic, 1).records).codec_id == codec


def test_timestamps_too_old_for_a_topic(admin: AdminClient, raw: RawClient, topic: str) -> None:
    create(admin, topic, message_timestamp_before_max_ms="1000")
    answer = raw.produce(topic, batch_of((None, b"v"), now_ms=now_ms() - 60_000))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP


def test_records_can_be_deleted(admin: AdminClient, raw: RawClient, topic: str) -> None:
    create(admin, topic)
    for _ in range(5):
        raw.produce(topic, one())
    partition = TopicPartition(topic, 0, 3)
    deleted = admin.delete_records([partition])[partition].result(WAIT_SECONDS)
    assert deleted.low_watermark == 3
    assert raw.fetch(topic, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert raw.fetch(topic, 3).error_code == ErrorCode.NONE
    assert raw.list_offset(topic, -2).offset == 3


def test_partitions_can_be_added(admin: AdminClient, raw: RawClient, topic: str) -> None:
    create(admin, topic, partitions=2)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT_SECONDS)
    assert raw.produce(topic, one(), partition=3).error_code == ErrorCode.NONE
    asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(4)}  # type: ignore[no-untyped-call]
    ends = {one.partition: future.result(WAIT_SECONDS).offset for one, future in admin.list_offsets(asked).items()}
    assert ends == {0: 0, 1: 0, 2: 0, 3: 1}


def test_an_idempotent_producer(broker: BrokerProcess, raw: RawClient, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
    for number in range(500):
        producer.produce(topic, f"{number}".encode(), partition=0)
    assert producer.flush(WAIT_SECONDS) == 0
    assert raw.list_offset(topic, -1).offset == 500
    assert read_header(raw.fetch(topic, 0).records).producer_id >= 0


def test_kafka_pythons_admin_client(broker: BrokerProcess, admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    client = KafkaAdminClient(bootstrap_servers=broker.address)
    try:
        assert topic in client.list_topics()
        client.delete_topics([topic])
        assert topic not in client.list_topics()
    finally:
        client.close()
