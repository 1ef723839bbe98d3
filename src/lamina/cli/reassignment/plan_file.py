"""The files of Kafka's kafka-reassign-partitions: the replicas that partitions are to have, and topics to move.

Owns their form. What says where in a broker a replica is to lie (``log_dirs``) must be ``any``.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from lamina.cli.kafka_file import KafkaFileError, check_different, entries_of, is_name, is_number, misshapen
from lamina.planning.moves import Replicas
from lamina.topic_partition import TopicPartition

T = TypeVar("T")

_FORM = '{"topic": …, "partition": N, "replicas": [ID, …]}'
_ANY = "any"
_IDS_END = _PARTITIONS_END = 2**31


def read_plan(data: bytes) -> dict[TopicPartition, Replicas]:
    """In the order of the file."""
    entries = [_entry(entry) for entry in entries_of(data)]
    check_different([key for key, _ in entries])
    return dict(entries)


def read_topics(data: bytes) -> list[str]:
    topics = [_topic(entry) for entry in entries_of(data, "topics")]
    check_different(topics, "topic")
    return topics


def plan_text(plan: Mapping[TopicPartition, Replicas]) -> str:
    """On one line, as Kafka's tool prints it."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": list(replicas), "log_dirs": [_ANY] * len(replicas)}
        for (topic, index), replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def read_from(file: str, read: Callable[[bytes], T], option: str) -> T:
    """What a file says; its mistakes are those of the command line."""
    with open(file, "rb") as opened:
        try:
            return read(opened.read())
        except KafkaFileError as error:
            raise click.BadParameter(f"{file}: {error}.", param_hint=option) from error


def save(file: str, plan: Mapping[TopicPartition, Replicas]) -> None:
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(plan_text(plan) + "\n")


def _entry(entry: Any) -> tuple[TopicPartition, Replicas]:
    if not isinstance(entry, dict):
        raise misshapen(entry, _FORM)
    topic: Any = entry.get("topic")
    index: Any = entry.get("partition")
    replicas: Any = entry.get("replicas")
    if not (is_name(topic) and is_number(index, 0, _PARTITIONS_END) and isinstance(replicas, list) and replicas):
        raise misshapen(entry, _FORM)
    if not all(is_number(one, 0, _IDS_END) for one in replicas):
        raise misshapen(entry, _FORM)
    if len(set(replicas)) < len(replicas):
        raise KafkaFileError(f"{topic}-{index} is assigned twice to the same broker: {replicas}")
    if any(one != _ANY for one in entry.get("log_dirs") or ()):
        raise KafkaFileError(f'{topic}-{index} asks for a log directory: only "any" is understood in "log_dirs"')
    return (topic, index), tuple(replicas)


def _topic(entry: Any) -> str:
    topic = entry.get("topic") if isinstance(entry, dict) else None
    if not is_name(topic):
        raise misshapen(entry, '{"topic": …}')
    return str(topic)
