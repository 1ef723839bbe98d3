"""One value in Avro's binary form, by its writer's schema: plain, as a reader's schema wants it, or as JSON.

Owns that nothing which the bytes may hold raises anything but NotDecodable, and that all bytes belong to the value.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from lamina.schema_registry.avro_guard import is_dangerous, walk
from lamina.schema_registry.avro_schema import WHOLE, AvroSchema, load_fastavro, parse_avro
from lamina.schema_registry.client import RegisteredSchema
from lamina.schema_registry.errors import NotDecodable, in_short
from lamina.schema_registry.json_values import checked_json, json_text
from lamina.schema_registry.logical_types import difference

AVRO, JSON = "AVRO", "JSON"
_WORDS = {"PROTOBUF": "Protobuf", AVRO: "Avro", JSON: "JSON Schema"}


def json_decoder(registered: RegisteredSchema) -> Callable[[bytes], str]:
    """Decodes Avro and JSON into the text of a JSON value; raises NotDecodable for schemas of other types."""
    if registered.kind == JSON:
        return checked_json
    if registered.kind != AVRO:
        raise NotDecodable(f"its schema is of type {_word(registered)}, which Lamina does not decode")
    schema = parse_avro(registered.text, registered.references)
    decode, decode_plain = _decoder(schema.logical, None), _decoder(schema.plain, None)

    def decode_json(payload: bytes) -> str:
        try:
            try:
                return json_text(decode(payload))
            except _OutOfCalendar:  # Such as a timestamp of 2^63 - 1, which means never: the number says as much.
                return json_text(decode_plain(payload))
        except RecursionError:
            raise NotDecodable("it is nested too deeply") from None

    return decode_json


def plain_decoder(registered: RegisteredSchema, reader: AvroSchema) -> Callable[[bytes], Any]:
    """Decodes Avro into what `reader` asks for, logical types as the numbers and bytes that they are made of."""
    if registered.kind != AVRO:
        raise NotDecodable(f"its schema is of type {_word(registered)}, and the reader's is of type Avro")
    writer = parse_avro(registered.text, registered.references)
    differs = difference(writer.root, reader.root, (writer.named, reader.named))
    if differs is not None:
        raise NotDecodable(f"its schema does not fit the reader's: {differs}")
    return _decoder(writer.plain, reader.plain)


class _OutOfCalendar(NotDecodable):
    """A date or a time that Python has no value for."""


def _decoder(writer: Any, reader: Any) -> Callable[[bytes], Any]:
    fastavro = load_fastavro()
    read, mismatch = fastavro.schemaless_reader, fastavro.read.SchemaResolutionError
    named = writer["__named_schemas"]
    is_walked = is_dangerous(writer, named)

    def decode(payload: bytes) -> Any:
        if is_walked:
            walk(writer, named, payload)
        stream = BytesIO(payload)
        try:
            value = read(stream, writer, reader)[WHOLE]
        except mismatch as error:
            raise NotDecodable(f"its schema does not fit the reader's: {in_short(error)}") from error
        except OverflowError as error:
            raise _OutOfCalendar(f"it holds a date or a time that is out of range ({in_short(error)})") from error
        except Exception as error:  # fastavro has no one error for corrupt bytes: EOFError, IndexError, others.
            reason = in_short(error) if isinstance(error, (UnicodeDecodeError, EOFError)) else type(error).__name__
            raise NotDecodable(f"it does not fit its schema ({reason or 'it ends too soon'})") from error
        if left := len(payload) - stream.tell():
            raise NotDecodable(f"it does not fit its schema: {left} bytes are left after its end")
        return value

    return decode


def _word(registered: RegisteredSchema) -> str:
    return _WORDS.get(registered.kind, in_short(registered.kind))
