"""A schema on the first line, and an Avro value behind it: refused in one sentence, or JSON, whatever the schema is.

The same value is read as its own schema wants it and as a second schema on the same line, behind a tab, does.
"""

import json

from lamina.schema_registry.avro_decoding import json_decoder, plain_decoder
from lamina.schema_registry.avro_schema import parse_avro
from lamina.schema_registry.client import RegisteredSchema
from lamina.schema_registry.errors import NotDecodable


def one(data: bytes) -> None:
    line, _, payload = data.partition(b"\n")
    writer, _, reader = line.decode("latin-1").partition("\t")
    registered = RegisteredSchema("AVRO", writer)
    try:
        json.loads(json_decoder(registered)(payload))
    except NotDecodable as error:
        assert "\n" not in str(error)
    try:
        plain_decoder(registered, parse_avro(reader or writer))(payload)
    except NotDecodable as error:
        assert "\n" not in str(error)
