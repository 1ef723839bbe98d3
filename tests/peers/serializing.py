"""Writes records by Confluent's own serializers: ``python -m tests.peers.serializing BOOTSTRAP URL TOPIC``.

A process of its own, for the serializers need packages that this project does not. Two versions of an Avro schema that
refers to another one, then JSON.
"""

import json
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

MONEY = {
    "type": "record",
    "name": "shop.Money",
    "fields": [{"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}],
}
FIRST: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "total", "type": "shop.Money"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
SECOND = [*FIRST, {"name": "note", "type": "string", "default": "none"}]
VALUE = {
    "id": 7,
    "total": {"amount": Decimal("12.50")},
    "day": date(2026, 1, 31),
    "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "tags": ["a", "é"],
}
JSON_SCHEMA = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}


def main(bootstrap: str, url: str, topic: str) -> None:
    # Here, so that a test without these packages can import what was written.
    from confluent_kafka import Producer
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    registry = SchemaRegistryClient({"url": url})
    registry.register_schema("money", Schema(json.dumps(MONEY), "AVRO"))  # type: ignore[call-arg]
    referred = [SchemaReference("shop.Money", "money", 1)]  # type: ignore[call-arg]
    orders = [
        Schema(json.dumps({"type": "record", "name": "shop.Order", "fields": fields}), "AVRO", referred)  # type: ignore[call-arg]
        for fields in (FIRST, SECOND)
    ]
    avro = [AvroSerializer(registry, order) for order in orders]
    in_json = JSONSerializer(json.dumps(JSON_SCHEMA), registry)
    where = SerializationContext(topic, MessageField.VALUE)
    elsewhere = SerializationContext(f"{topic}-json", MessageField.VALUE)
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in (
        avro[0](VALUE, where),
        avro[1]({**VALUE, "at": None, "note": "new"}, where),
        in_json({"id": 8}, elsewhere),
        None,
    ):
        producer.produce(topic, value=value, key=b"plain", partition=0)
    assert producer.flush(30) == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
