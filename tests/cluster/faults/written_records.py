"""Records with keys in all partitions of a topic, and where they are.

Must not know what is done to brokers.
"""

from collections import defaultdict
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

WrittenRecords = dict[int, dict[int, bytes]]
"""The values by partition and offset."""
KEYS = 100
_PARTITION_RECORDS = 3000
_VALUE_BYTES = 300
_A_BATCH = 20
_SECONDS = 60.0


def write_records(bootstrap: str, topic: str, partitions: int = 1) -> WrittenRecords:
    """All of them acknowledged. Every key is written again and again."""
    written: WrittenRecords = defaultdict(dict)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "batch.num.messages": _A_BATCH,
            "log_level": 0,
        }
    )

    def delivered(value: bytes, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        written[int(message.partition() or 0)][int(message.offset() or 0)] = value

    for number in range(partitions * _PARTITION_RECORDS):
        place, value = number % partitions, b"%d" % number
        key = b"key-%d" % (number // partitions % KEYS)
        padded = value.ljust(_VALUE_BYTES, b".")
        producer.produce(topic, padded, key, place, on_delivery=partial(delivered, padded))
        producer.poll(0)
    assert producer.flush(_SECONDS) == 0
    return dict(written)
