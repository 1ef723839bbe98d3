"""The file of Kafka's kafka-leader-election: for which partitions leaders are to be elected.

Must not know files: bytes in, partitions out.
"""

from typing import Any

from lamina.cli.kafka_file import check_different, entries_of, is_name, is_number, misshapen
from lamina.topic_partition import TopicPartition


def read_partitions(data: bytes) -> list[TopicPartition]:
    partitions = [_partition(entry) for entry in entries_of(data)]
    check_different(partitions)
    return partitions


def _partition(entry: Any) -> TopicPartition:
    if isinstance(entry, dict):
        topic: Any = entry.get("topic")
        partition: Any = entry.get("partition")
        if is_name(topic) and is_number(partition, 0, 2**31):
            return topic, partition
    raise misshapen(entry, '{"topic": …, "partition": N}')
