"""One Arrow array of keys or values to an array of what is in them, on an executor.

Owns what a worker's process keeps from batch to batch, and that a value which cannot be decoded costs its own row
alone. Must not know Spark's types.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from lamina.schema_registry.avro_decoding import json_decoder, plain_decoder
from lamina.schema_registry.avro_schema import parse_avro
from lamina.schema_registry.client import RegisteredSchema, RegistryClient
from lamina.schema_registry.errors import NotDecodable, RegistryError, in_short
from lamina.schema_registry.location import Location
from lamina.schema_registry.writer_schemas import WriterSchemas
from pyspark_lamina.avro_columns import JSON_TEXT, AvroColumn, avro_column

_REGISTRIES = 16
_NOT_ARROW = (pa.ArrowException, OverflowError, ValueError, TypeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Decoding:
    """What a worker is told: from which registry, and which Avro schema to read as; JSON without one."""

    location: Location
    reader: RegisteredSchema | None = None


def decoded(decoding: Decoding, framed: pa.Array) -> pa.StructArray:
    """Raises RegistryError where the registry is not to be had."""
    schemas, column = _kept(decoding)
    if not (pa.types.is_binary(framed.type) or pa.types.is_large_binary(framed.type)):
        raise RegistryError(f"from_registry takes a binary column such as value, and this one is of type {framed.type}")
    values: list[Any] = []
    errors: list[str | None] = []
    for data in framed.to_pylist():
        value, error = (None, None) if data is None else _one(schemas, column.change, data)
        values.append(value)
        errors.append(error)
    array = _array(values, errors, column.arrow)
    fields = [pa.field("value", column.arrow), pa.field("error", pa.string())]
    return pa.StructArray.from_arrays([array, pa.array(errors, pa.string())], fields=fields, mask=framed.is_null())


@lru_cache(maxsize=_REGISTRIES)
def _kept(decoding: Decoding) -> tuple[WriterSchemas[Any], AvroColumn]:
    client = RegistryClient(decoding.location)
    if decoding.reader is None:
        return WriterSchemas(client, json_decoder), JSON_TEXT
    reader = parse_avro(decoding.reader.text, decoding.reader.references)
    return WriterSchemas(client, lambda writer: plain_decoder(writer, reader)), avro_column(reader)


def _one(schemas: WriterSchemas[Any], change: Callable[[Any], Any] | None, data: bytes) -> tuple[Any, str | None]:
    try:
        _, value = schemas.decode(data)
    except NotDecodable as error:
        return None, str(error)
    try:
        return (value if change is None or value is None else change(value)), None
    except _NOT_ARROW as error:
        return None, _does_not_fit(error)


def _array(values: list[Any], errors: list[str | None], wanted: pa.DataType) -> pa.Array:
    """Values that are too large for their type are told apart only where there are some."""
    try:
        return pa.array(values, wanted)
    except _NOT_ARROW:
        pass
    for row, value in enumerate(values):
        try:
            pa.array([value], wanted)
        except _NOT_ARROW as error:
            values[row], errors[row] = None, _does_not_fit(error)
    return pa.array(values, wanted)


def _does_not_fit(error: Exception) -> str:
    return f"it does not fit its column: {in_short(error)}"
