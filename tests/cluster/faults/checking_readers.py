"""Readers of one partition from its start that check CRCs: those of librdkafka, of aiokafka, and Kafka's own.

Each tells the values that it was given, and what it complained of. Must not know what is done to brokers.
"""

import asyncio
import re
from collections.abc import Callable
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.peers.kafka import run_tool

_SECONDS = 60.0
_NO_COMPLAINT = ""


class Reading(NamedTuple):
    values: list[bytes]
    complaint: str
    """Empty where the end was reached."""


def read_with_librdkafka(bootstrap: str, topic: str, partition: int) -> Reading:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "check.crcs": True,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    values: list[bytes] = []
    try:
        while (message := consumer.poll(_SECONDS)) is not None:
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                return Reading(values, _NO_COMPLAINT)
            elif not error.retriable():
                return Reading(values, str(error))
    finally:
        consumer.close()
    raise AssertionError(f"librdkafka gave {len(values)} values of {topic}-{partition}, then nothing")


def read_with_aiokafka(bootstrap: str, topic: str, partition: int) -> Reading:
    return asyncio.run(_read_with_aiokafka(bootstrap, AioTopicPartition(topic, partition)))


async def _read_with_aiokafka(bootstrap: str, place: AioTopicPartition) -> Reading:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
    consumer.assign([place])
    values: list[bytes] = []
    await consumer.start()
    try:
        end = (await consumer.end_offsets([place]))[place]
        while await consumer.position(place) < end:
            values += [record.value for record in (await consumer.getmany(timeout_ms=100)).get(place, [])]
    except AioKafkaError as error:
        return Reading(values, str(error))
    finally:
        await consumer.stop()
    return Reading(values, _NO_COMPLAINT)


def read_with_kafka(bootstrap: str, topic: str, partition: int) -> Reading:
    """By its console consumer, of values that are digits and then something else."""
    where = ("--bootstrap-server", bootstrap, "--topic", topic, "--partition", str(partition), "--offset", "earliest")
    printed = run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *where, "--timeout-ms", "3000")
    values = [line.encode() for line in printed.splitlines() if re.fullmatch(r"\d+\D+", line)]
    complaint = re.search(r"^\S*KafkaException: .*", printed, re.MULTILINE)
    return Reading(values, complaint[0] if complaint else _NO_COMPLAINT)


Reader = Callable[[str, str, int], Reading]
READERS: tuple[Reader, ...] = (read_with_librdkafka, read_with_aiokafka, read_with_kafka)
