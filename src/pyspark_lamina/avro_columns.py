"""What a reader's Avro schema is in Spark: the type of a column, and how plain values become an Arrow array of it.

Owns the table of docs/spark.md. Every column may be null. Must not know registries, nor bytes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lamina.schema_registry.avro_schema import AvroSchema
from lamina.schema_registry.errors import RegistryError
from lamina.schema_registry.logical_types import logical_type

Change = Callable[[Any], Any]
"""From a plain value, which is not null, to one that Arrow takes."""

MAX_DECIMAL_DIGITS = 38
_MAX_DECIMAL_BYTES = 64
_EXACT = Context(prec=200)
_UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class AvroColumn:
    spark: DataType
    arrow: pa.DataType
    change: Change | None = None
    """``None`` where Arrow takes the plain value."""


JSON_TEXT = AvroColumn(StringType(), pa.string())
"""Of what no schema was given for."""


def avro_column(schema: AvroSchema) -> AvroColumn:
    """Raises RegistryError for what Spark has no type for."""
    return _Columns(schema.named).of(schema.root, "the value")


class _Columns:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._above: list[str] = []

    def of(self, schema: Any, path: str) -> AvroColumn:
        if isinstance(schema, list):
            return self._union(schema, path)
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, (dict, list)):
            return self.of(kind, path)
        if kind == "record":
            return self._record(schema, path)
        if kind == "array":
            return self._array(self.of(schema["items"], f"{path}[]"))
        if kind == "map":
            return self._map(self.of(schema["values"], f"{path}[]"))
        return _logical(schema) or _PLAIN[kind]

    def _union(self, branches: list[Any], path: str) -> AvroColumn:
        others = [branch for branch in branches if branch != "null"]
        if not others:
            return _PLAIN["null"]
        if len(others) > 1:
            kinds = ", ".join(_told(branch) for branch in others)
            raise RegistryError(
                f"{path} is a union of {kinds}, for which Spark has no type: give a schema with one of them, "
                "or neither schema nor subject, which gives JSON"
            )
        return self.of(others[0], path)

    def _record(self, schema: Any, path: str) -> AvroColumn:
        name = str(schema["name"])
        if name in self._above:
            raise RegistryError(
                f"{path} is of the recursive type {name}, for which Spark has no type: give a schema without it, "
                "or neither schema nor subject, which gives JSON"
            )
        self._above.append(name)
        fields = {field["name"]: self.of(field["type"], f"{path}.{field['name']}") for field in schema["fields"]}
        self._above.pop()
        changes = [(name, column.change) for name, column in fields.items() if column.change is not None]

        def change(row: dict[str, Any]) -> dict[str, Any]:
            return {**row, **{name: None if row[name] is None else one(row[name]) for name, one in changes}}

        return AvroColumn(
            StructType([StructField(name, column.spark) for name, column in fields.items()]),
            pa.struct([pa.field(name, column.arrow) for name, column in fields.items()]),
            change if changes else None,
        )

    def _array(self, item: AvroColumn) -> AvroColumn:
        one = item.change

        def change(items: list[Any]) -> list[Any]:
            assert one is not None
            return [None if each is None else one(each) for each in items]

        element = pa.field("element", item.arrow)
        return AvroColumn(ArrayType(item.spark), pa.list_(element), None if one is None else change)

    def _map(self, value: AvroColumn) -> AvroColumn:
        one = value.change

        def change(entries: dict[str, Any]) -> list[tuple[str, Any]]:
            if one is None:
                return list(entries.items())
            return [(key, None if each is None else one(each)) for key, each in entries.items()]

        return AvroColumn(MapType(StringType(), value.spark), pa.map_(pa.string(), value.arrow), change)


_PLAIN = {
    "null": AvroColumn(NullType(), pa.null()),
    "boolean": AvroColumn(BooleanType(), pa.bool_()),
    "int": AvroColumn(IntegerType(), pa.int32()),
    "long": AvroColumn(LongType(), pa.int64()),
    "float": AvroColumn(FloatType(), pa.float32()),
    "double": AvroColumn(DoubleType(), pa.float64()),
    "bytes": AvroColumn(BinaryType(), pa.binary()),
    "string": AvroColumn(StringType(), pa.string()),
    "fixed": AvroColumn(BinaryType(), pa.binary()),
    "enum": AvroColumn(StringType(), pa.string()),
}
_INSTANT = AvroColumn(TimestampType(), pa.timestamp("us", "UTC"))
_WALL_CLOCK = AvroColumn(TimestampNTZType(), pa.timestamp("us"))


def _in_micros(column: AvroColumn) -> AvroColumn:
    return AvroColumn(column.spark, column.arrow, lambda millis: millis * 1000)


_TIMES = {
    "date": AvroColumn(DateType(), pa.date32()),
    "timestamp-micros": _INSTANT,
    "timestamp-millis": _in_micros(_INSTANT),
    "local-timestamp-micros": _WALL_CLOCK,
    "local-timestamp-millis": _in_micros(_WALL_CLOCK),
}


def _logical(schema: Any) -> AvroColumn | None:
    """``None`` for what is read as the plain type below it: times of day, nanoseconds, durations, others' types."""
    name = logical_type(schema)
    if name is not None and name.startswith("decimal("):
        precision, scale = schema["precision"], schema.get("scale") or 0
        return _decimal(precision, scale) if precision <= MAX_DECIMAL_DIGITS else None
    if name is not None:
        return _TIMES.get(name)
    is_uuid = isinstance(schema, dict) and schema.get("logicalType") == "uuid"
    if is_uuid and schema["type"] == "fixed" and schema["size"] == _UUID_BYTES:
        return AvroColumn(StringType(), pa.string(), lambda data: str(UUID(bytes=data)))
    return None


def _decimal(precision: int, scale: int) -> AvroColumn:
    def change(data: bytes) -> Decimal:
        if len(data) > _MAX_DECIMAL_BYTES:
            raise ValueError(f"a decimal of {len(data)} bytes")
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)

    return AvroColumn(DecimalType(precision, scale), pa.decimal128(precision, scale), change)


def _told(schema: Any) -> str:
    return str(schema if isinstance(schema, str) else schema.get("name") or schema["type"])
