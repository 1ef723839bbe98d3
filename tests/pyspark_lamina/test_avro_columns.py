"""A reader's Avro schema as a column of Spark, and values that do or do not fit it; no Spark is started."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lamina.schema_registry.avro_schema import parse_avro
from lamina.schema_registry.client import RegisteredSchema
from lamina.schema_registry.errors import RegistryError
from lamina.schema_registry.location import Location
from pyspark_lamina import registry_decoding
from pyspark_lamina.avro_columns import avro_column
from pyspark_lamina.registry_decoding import Decoding, decoded
from tests.schema_registry.registry import Registry, avro, framed, serving
from tests.schema_registry.test_avro_decoding import LIST, field, record

MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


def spark_type(schema: Any) -> str:
    return avro_column(parse_avro(json.dumps(schema))).spark.simpleString()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("null", "void"),
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("bytes", "binary"),
        ("string", "string"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, "string"),
        ({"type": "fixed", "name": "F", "size": 3}, "binary"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "long", "logicalType": "time-micros"}, "bigint"),
        (MILLIS, "timestamp"),
        (MICROS, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "bigint"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp_ntz"),
        (PRICE, "decimal(4,2)"),
        (PRICE | {"precision": 50}, "binary"),
        ({"type": "int", "logicalType": "mine"}, "int"),
        (["null", "long"], "bigint"),
        (["null"], "void"),
        ({"type": "array", "items": ["null", MILLIS]}, "array<timestamp>"),
        ({"type": "map", "values": {"type": "array", "items": "int"}}, "map<string,array<int>>"),
        (
            record(field("a", record(field("b", "int"), name="In")), field("c", "In")),
            "struct<a:struct<b:int>,c:struct<b:int>>",
        ),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert spark_type(schema) == expected


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (
            record(field("x", ["null", "int", "string"])),
            "the value.x is a union of int, string, for which Spark has no type",
        ),
        (LIST, "the value.next is of the recursive type L, for which Spark has no type"),
        ({"type": "array", "items": ["int", LIST]}, r"the value\[\] is a union of int, L,"),
    ],
)
def test_what_spark_has_no_type_for(schema: Any, sentence: str) -> None:
    with pytest.raises(RegistryError, match=sentence):
        spark_type(schema)


def decode(registry: Registry, reader: Any, *values: bytes | None) -> list[Any]:
    registered = None if reader is None else RegisteredSchema("AVRO", json.dumps(reader))
    array = pa.array(values, pa.binary())
    found: list[Any] = decoded(Decoding(Location(registry.url), registered), array).to_pylist()
    return found


def test_values_become_arrow() -> None:
    schema = record(
        field("at", ["null", MILLIS]),
        field("day", {"type": "int", "logicalType": "date"}),
        field("price", PRICE),
        field("prices", {"type": "map", "values": ["null", PRICE]}),
        field("times", {"type": "array", "items": ["null", MICROS]}),
        field("id", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}),
    )
    value = {
        "at": datetime(2026, 1, 31, tzinfo=UTC),
        "day": date(2026, 1, 31),
        "price": Decimal("-1.25"),
        "prices": {"a": Decimal("1.00"), "b": None},
        "times": [None, datetime(1960, 1, 1, tzinfo=UTC)],
        "id": b"\0" * 15 + b"\5",
    }
    with serving() as registry:
        number = registry.add(schema)
        plain = {**schema, "fields": [*schema["fields"][:-1], field("id", {"type": "fixed", "name": "U", "size": 16})]}
        nothing = {**value, "at": None, "prices": {}, "times": []}
        rows = decode(registry, schema, framed(number, avro(plain, value)), None, framed(number, avro(plain, nothing)))
    told = value | {"prices": [("a", Decimal("1.00")), ("b", None)], "id": "00000000-0000-0000-0000-000000000005"}
    assert rows == [
        {"value": told, "error": None},
        None,
        {"value": told | {"at": None, "prices": [], "times": []}, "error": None},
    ]


def test_a_value_that_does_not_fit_costs_its_own_row() -> None:
    schema = record(field("price", PRICE), field("at", MILLIS))
    plain = record(field("price", "bytes"), field("at", "long"))
    with serving() as registry:
        number = registry.add(schema)
        sent = [(b"\1", 5), (b"\1" * 8, 5), (b"\1" * 100, 5), (b"\1", 2**63 - 1), (b"\2", 5)]
        rows = decode(
            registry, schema, *(framed(number, avro(plain, {"price": p, "at": at})) for p, at in sent), b"text", b""
        )
    assert [None if row["value"] is None else row["value"]["price"] for row in rows] == [
        Decimal("0.01"), None, None, None, Decimal("0.02"), None, None
    ]  # fmt: skip
    assert [row["error"] is None for row in rows] == [True, False, False, False, True, False, False]
    assert all(row["error"].startswith("it does not fit its column: ") for row in rows[1:4])
    assert rows[5]["error"] == "it begins with byte 116, not with a zero byte and the id of a schema"


def test_without_a_reader_schema_values_are_json() -> None:
    with serving() as registry:
        numbers = registry.add("int"), registry.add({}, "JSON"), registry.add("message M {}", "PROTOBUF")
        rows = decode(
            registry, None, *(framed(number, data) for number, data in zip(numbers, (b"\2", b"[1]", b""), strict=True))
        )
    assert rows[:2] == [{"value": "1", "error": None}, {"value": "[1]", "error": None}]
    assert rows[2]["error"] == "schema 3: its schema is of type Protobuf, which Lamina does not decode"


def test_schemas_are_kept_from_batch_to_batch() -> None:
    with serving() as registry:
        number = registry.add("int")
        for _ in range(3):
            assert decode(registry, "long", framed(number, b"\2")) == [{"value": 1, "error": None}]
        assert registry.asked == ["/schemas/ids/1"]
        assert decode(registry, "long") == []
        registry.always = (401, {}, b"")
        with pytest.raises(RegistryError, match="refuses this login"):
            decode(registry, "long", framed(9, b""))
        with pytest.raises(RegistryError, match="takes a binary column such as value, and this one is of type string"):
            decoded(Decoding(Location(registry.url)), pa.array(["text"]))
    registry_decoding._kept.cache_clear()
