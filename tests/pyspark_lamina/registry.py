"""What a session shows of ``from_registry``: types, rows that cannot be decoded, and a registry that is away."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.errors import PythonException

from lamina.schema_registry.errors import RegistryError
from pyspark_lamina.functions import from_registry
from tests.arrow.topics import create, produce
from tests.pyspark_lamina.reading import Topics, rows
from tests.schema_registry.registry import Registry, avro, framed, serving

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": ["null", "int"]}}},
        {"name": "nothing", "type": "null"},
    ],
}
VALUE = {
    "id": 7,
    "day": date(2026, 1, 31),
    "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "price": Decimal("12.50"),
    "lines": [{"a": 1, "b": None}],
    "nothing": None,
}


def values_are_decoded(topics: Topics) -> None:
    create(topics.servers, "decoded")
    with serving() as registry:
        registry.add(ORDER, subject="decoded-value")
        registry.add({"type": "object"}, "JSON")
        sent = [framed(1, avro(ORDER, VALUE)), None, framed(9, b""), b"text", framed(2, b'{"a": 1}')]
        produce(topics.servers, "decoded", [(b"%d" % number, value) for number, value in enumerate(sent)])
        _with_a_subject(topics, registry)
        _as_json(topics, registry)
        _by_a_schema_of_ones_own(topics, registry)
    _a_registry_that_is_away_ends_the_query(topics, registry)


def _with_a_subject(topics: Topics, registry: Registry) -> None:
    decoded = from_registry("value", registry.url, subject="decoded-value").alias("decoded")
    frame = topics.load({"subscribe": "decoded"}).select("offset", decoded)
    assert frame.schema["decoded"].dataType.simpleString() == (
        "struct<value:struct<id:bigint,day:date,at:timestamp,price:decimal(9,2),"
        "lines:array<map<string,int>>,nothing:void>,error:string>"
    )
    first, gone, *wrong = frame.orderBy("offset").collect()
    told = first["decoded"]["value"].asDict(recursive=True)
    told["at"] = told["at"].astimezone(UTC)
    assert told == VALUE
    assert gone["decoded"] is None
    assert [row["decoded"]["error"] for row in wrong] == [
        f"the schema registry at {registry.url} has no schema 9",
        "it begins with byte 116, not with a zero byte and the id of a schema",
        "schema 2: its schema is of type JSON Schema, and the reader's is of type Avro",
    ]
    assert frame.select("decoded.value.*").filter("price > 12").count() == 1


def _as_json(topics: Topics, registry: Registry) -> None:
    decoded = from_registry("value", registry.url).alias("decoded")
    found = topics.load({"subscribe": "decoded"}).select(decoded).select("decoded.value").filter("value IS NOT NULL")
    first, second = (row[0] for row in rows(found))
    assert json.loads(first)["price"] == "12.50"
    assert second == '{"a": 1}'


def _by_a_schema_of_ones_own(topics: Topics, registry: Registry) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "double"}]}
    decoded = from_registry("value", registry.url, schema=json.dumps(schema)).alias("decoded")
    assert rows(topics.load({"subscribe": "decoded"}).select(decoded).select("decoded.value.id").limit(1)) == [(7.0,)]
    with pytest.raises(RegistryError, match="has no subject 'orders'"):
        from_registry("value", registry.url, subject="orders")
    with pytest.raises(RegistryError, match="give schema or subject, not both"):
        from_registry("value", registry.url, subject="orders", schema="{}")
    with pytest.raises(RegistryError, match="the reader's schema cannot be used: its Avro schema is not valid"):
        from_registry("value", registry.url, schema="{}")


def _a_registry_that_is_away_ends_the_query(topics: Topics, registry: Registry) -> None:
    decoded = from_registry("value", registry.url, options={"max.retries": "1"}).alias("decoded")
    with pytest.raises(PythonException) as raised:
        topics.load({"subscribe": "decoded"}).select(decoded).collect()
    assert f"the schema registry at {registry.url} does not answer" in str(raised.value)
    assert "File " not in str(raised.value)
