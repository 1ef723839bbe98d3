"""Avro and JSON by the schemas that they were written with; whatever the bytes are, only NotDecodable comes out."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.schema_registry.avro_decoding import json_decoder, plain_decoder
from lamina.schema_registry.avro_schema import parse_avro
from lamina.schema_registry.client import RegisteredSchema
from lamina.schema_registry.errors import NotDecodable
from tests.schema_registry.registry import avro

LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
NULLS = {"type": "array", "items": "null"}


def record(*fields: dict[str, Any], name: str = "o.R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def registered(schema: Any, kind: str = "AVRO", references: tuple[str, ...] = ()) -> RegisteredSchema:
    return RegisteredSchema(kind, json.dumps(schema), references)


def as_json(schema: Any, payload: bytes) -> str:
    return json_decoder(registered(schema))(payload)


def as_plain(writer: Any, reader: Any, payload: bytes) -> Any:
    return plain_decoder(registered(writer), parse_avro(json.dumps(reader)))(payload)


EVERYTHING = record(
    field("day", {"type": "int", "logicalType": "date"}),
    field("clock", {"type": "int", "logicalType": "time-millis"}),
    field("at", {"type": "long", "logicalType": "timestamp-millis"}),
    field("exactly", {"type": "long", "logicalType": "timestamp-micros"}),
    field("local", {"type": "long", "logicalType": "local-timestamp-millis"}),
    field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    field("id", {"type": "string", "logicalType": "uuid"}),
    field("maybe", ["null", "string"]),
    field("suit", {"type": "enum", "name": "Suit", "symbols": ["HEARTS", "SPADES"]}),
    field("hash", {"type": "fixed", "name": "Hash", "size": 2}),
    field("tags", {"type": "array", "items": "string"}),
    field("sizes", {"type": "map", "values": "double"}),
    field("inner", record(field("x", ["int", "string"]), name="Inner")),
)


def test_avro_as_json() -> None:
    value = {
        "day": date(2026, 1, 31),
        "clock": time(12, 0, 1),
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "exactly": datetime(2026, 1, 31, 12, 0, 0, 7, tzinfo=UTC),
        "local": datetime(2026, 1, 31, 12),
        "price": Decimal("-12.50"),
        "id": UUID(int=5),
        "maybe": None,
        "suit": "SPADES",
        "hash": b"\0\xff",
        "tags": ["é", ""],
        "sizes": {"a": float("nan"), "b": 1.5},
        "inner": {"x": "7"},
    }
    assert json.loads(as_json(EVERYTHING, avro(EVERYTHING, value))) == {
        "day": "2026-01-31",
        "clock": "12:00:01",
        "at": "2026-01-31T12:00:00Z",
        "exactly": "2026-01-31T12:00:00.000007Z",
        "local": "2026-01-31T12:00:00",
        "price": "-12.50",
        "id": "00000000-0000-0000-0000-000000000005",
        "maybe": None,
        "suit": "SPADES",
        "hash": "AP8=",
        "tags": ["é", ""],
        "sizes": {"a": "NaN", "b": 1.5},
        "inner": {"x": "7"},
    }


def test_a_time_that_no_calendar_has_is_its_number() -> None:
    schema = record(field("until", {"type": "long", "logicalType": "timestamp-millis"}))
    forever = record(field("until", "long"))
    assert as_json(schema, avro(forever, {"until": 2**63 - 1})) == '{"until":9223372036854775807}'


@pytest.mark.parametrize(
    ("schema", "value"), [("string", "a"), (["null", "int"], 5), (NULLS, [None, None]), ("null", None)]
)
def test_a_schema_need_not_be_a_record(schema: Any, value: object) -> None:
    assert json.loads(as_json(schema, avro(schema, value))) == value


def test_named_types_of_other_schemas() -> None:
    money = record(field("cents", "long"), name="shop.Money")
    order = record(field("total", "shop.Money"), name="shop.Order")
    refund = record(field("back", "Money"), name="shop.Refund")
    whole = RegisteredSchema(
        "AVRO", json.dumps(["shop.Order", "shop.Refund"]), tuple(map(json.dumps, (money, order, refund)))
    )
    assert json_decoder(whole)(b"\x02\x0a") == '{"back":{"cents":5}}'
    reader = parse_avro(json.dumps(order), (json.dumps(money),))
    assert plain_decoder(registered(order, references=(json.dumps(money),)), reader)(b"\x0a") == {"total": {"cents": 5}}


def test_json_is_passed_on_as_it_is() -> None:
    decode = json_decoder(registered({"type": "object"}, "JSON"))
    assert decode(b'{"a": 1.0, "b": 1e400}') == '{"a": 1.0, "b": 1e400}'
    for bad in (b"", b"{", b"NaN", b"\xff", b"{} {}"):
        with pytest.raises(NotDecodable, match="it is not JSON"):
            decode(bad)
    with pytest.raises(NotDecodable, match="nested too deeply"):
        decode(b"[" * 1_000_000)


def test_a_reader_schema_is_resolved() -> None:
    writer = record(field("a", "int"), field("gone", "string"))
    reader = record(
        field("a", "long"), field("new", "bytes", default="\u00ff"), field("b", "int", default=3), name="x.R"
    )
    assert as_plain(writer, reader, avro(writer, {"a": 7, "gone": "x"})) == {"a": 7, "new": b"\xff", "b": 3}


def test_a_default_of_a_named_type_and_one_that_is_not_of_its_type() -> None:
    inner = record(field("b", "bytes", default="\u0001"), name="o.Inner")
    reader = record(field("x", inner), field("y", "o.Inner"), field("z", ["null", "string"], default="none"))
    bare = record(name="o.Inner")
    writer = record(field("x", bare), field("y", "o.Inner"))
    assert as_plain(writer, reader, b"") == {"x": {"b": b"\1"}, "y": {"b": b"\1"}, "z": "none"}


def test_plain_values_have_no_logical_types() -> None:
    writer = record(field("at", ["null", {"type": "long", "logicalType": "timestamp-millis"}]))
    assert as_plain(writer, writer, b"\x02\x02") == {"at": 1}
    bare = record(field("at", ["null", "long"]))
    assert as_plain(writer, bare, b"\x02\x02") == {"at": 1}
    assert as_plain(bare, writer, b"\x02\x02") == {"at": 1}


@pytest.mark.parametrize(
    ("writer", "reader", "sentence"),
    [
        (record(field("a", "string")), record(field("a", "int")), "does not fit the reader's: Schema mismatch"),
        (
            record(field("a", "int")),
            record(field("b", "int")),
            "does not fit the reader's: No default value for field b",
        ),
        (
            record(field("t", ["null", {"type": "long", "logicalType": "timestamp-millis"}])),
            record(field("t", {"type": "long", "logicalType": "timestamp-micros"})),
            "value.t is timestamp-millis in the writer's schema, and timestamp-micros in the reader's",
        ),
        (
            record(field("m", {"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 9}})),
            record(
                field(
                    "m",
                    {"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                )
            ),
            r"value.m is decimal\(9,0\) in the writer's schema, and decimal\(9,2\)",
        ),
    ],
)
def test_schemas_that_do_not_fit(writer: Any, reader: Any, sentence: str) -> None:
    with pytest.raises(NotDecodable, match=sentence):
        as_plain(writer, reader, b"\x02\x02\x02\x02")


@pytest.mark.parametrize(
    ("schema", "payload", "sentence"),
    [
        ("int", b"", "it does not fit its schema"),
        ("int", b"\x02\x02", "1 bytes are left after its end"),
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01abc", "it does not fit its schema"),
        ("string", b"\x04\xff\xfe", "it does not fit its schema .*invalid start byte"),
        ("double", b"\x06a", "it does not fit its schema"),
        (["null", "int"], b"\x10", "it does not fit its schema"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x10", "it does not fit its schema"),
        (LIST, b"\x02" * 1_000_000, "it is nested more than 400 deep"),
        (record(field("l", LIST), field("x", "int")), b"\x02" * 1_000_000, "it is nested more than 400 deep"),
        (record(field("r", "o.R")), b"", "it is nested more than 400 deep"),
        (NULLS, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "it claims 9223372036854775807 items"),
        ({"type": "array", "items": NULLS}, (b"\x02" + b"\x80\x80\x08\x00") * 4 + b"\x00", "it claims 65536 items"),
        (LIST, b"\x04", "a union has no such branch"),
        (LIST, b"\xff" * 20, "a number has no end"),
        (LIST, b"", "it ends too soon"),
    ],
)
def test_corrupt_bytes(schema: Any, payload: bytes, sentence: str) -> None:
    with pytest.raises(NotDecodable, match=sentence):
        as_json(schema, payload)


def test_a_field_that_is_passed_over_is_looked_at_too() -> None:
    writer, reader = record(field("l", LIST), field("x", "int")), record(field("x", "int"))
    assert as_plain(writer, reader, b"\x02\x02\x00\x0a") == {"x": 5}
    with pytest.raises(NotDecodable, match="nested more than 400 deep"):
        as_plain(writer, reader, b"\x02" * 1_000_000)


def test_a_recursive_value() -> None:
    value: dict[str, Any] = {"next": None}
    for _ in range(100):
        value = {"next": value}
    assert json.loads(as_json(LIST, avro(LIST, value))) == value


@pytest.mark.parametrize(
    ("schema", "kind", "sentence"),
    [
        ("message M {}", "PROTOBUF", "its schema is of type Protobuf, which Lamina does not decode"),
        ({}, "AVRO", "its Avro schema is not valid"),
        ("nope", "AVRO", "its Avro schema is not valid"),
        (5, "AVRO", "its Avro schema is not valid"),
        (None, "AVRO", "its Avro schema is not valid"),
        ({"type": "fixed", "name": "F"}, "AVRO", "its Avro schema is not valid"),
    ],
)
def test_schemas_that_are_of_no_use(schema: Any, kind: str, sentence: str) -> None:
    with pytest.raises(NotDecodable, match=sentence):
        json_decoder(registered(schema, kind))
    if kind == "PROTOBUF":
        with pytest.raises(NotDecodable, match="of type Protobuf, and the reader's is of type Avro"):
            plain_decoder(registered(schema, kind), parse_avro('"int"'))


def test_a_schema_that_is_nested_too_deeply_or_doubles_itself() -> None:
    with pytest.raises(NotDecodable, match="nested too deeply"):
        json_decoder(RegisteredSchema("AVRO", '{"type":"array","items":' * 3000 + '"int"' + "}" * 3000))
    doubling: Any = record(field("a", "null"), name="R0")
    for number in range(1, 40):
        doubling = record(field("a", doubling), field("b", f"R{number - 1}"), name=f"R{number}")
    with pytest.raises(NotDecodable, match="more than 100000 fields"):
        json_decoder(registered(doubling))


@given(
    payload=st.binary(max_size=200),
    schema=st.sampled_from([EVERYTHING, LIST, record(field("l", LIST), field("n", NULLS))]),
)
def test_no_bytes_raise_anything_else(payload: bytes, schema: Any) -> None:
    for decode in (json_decoder(registered(schema)), plain_decoder(registered(schema), parse_avro(json.dumps(schema)))):
        try:
            decode(payload)
        except NotDecodable as error:
            assert "\n" not in str(error)
