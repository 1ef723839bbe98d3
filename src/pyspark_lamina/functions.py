"""Functions for columns: ``from_registry``, which decodes keys and values whose schema is in a schema registry.

Owns what a person says there, and what is asked of the registry while a query is written. Importing it needs PySpark
and pyarrow.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyspark
from pyspark.sql import Column
from pyspark.sql import functions as spark_functions
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lamina.schema_registry.avro_schema import parse_avro
from lamina.schema_registry.client import RegisteredSchema, RegistryClient
from lamina.schema_registry.errors import NotDecodable, RegistryError
from lamina.schema_registry.location import parse_location
from pyspark_lamina.avro_columns import JSON_TEXT, avro_column
from pyspark_lamina.registry_decoding import Decoding, decoded
from pyspark_lamina.sentences import in_one_sentence


def from_registry(
    column: Column | str,
    url: str,
    *,
    subject: str | None = None,
    schema: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Column:
    """``struct<value, error>`` of a binary column such as ``value``: what was decoded, or why it was not.

    With ``schema``, a reader's schema of Avro as JSON text, or with ``subject``, whose latest version is read now and
    is that schema, ``value`` has Spark's type for it. Without both, or if the subject's type is JSON Schema, ``value``
    is JSON as a string, of Avro and of JSON alike. Null stays null. A value that cannot be decoded never ends the
    query; a registry that cannot be asked does.

    Raises RegistryError with one sentence.
    """
    location = parse_location(url, options or {})
    client = RegistryClient(location)
    if subject is not None and schema is not None:
        raise RegistryError("give schema or subject, not both")
    reader = None
    if subject is not None:
        reader = _reader_of(subject, client.latest(subject))
    elif schema is not None:
        reader = RegisteredSchema("AVRO", schema)
    kind = JSON_TEXT.spark if reader is None else _column_type(reader)
    decoding = Decoding(location, reader)

    def from_registry(framed: pa.Array) -> pa.Array:
        with in_one_sentence():
            return decoded(decoding, framed)

    udf = getattr(spark_functions, "arrow_udf", None)
    if udf is None:
        raise RegistryError(f"from_registry needs PySpark 4.1 or newer, and this is {pyspark.__version__}")
    result = StructType([StructField("value", kind), StructField("error", StringType())])
    made: Column = udf(from_registry, result)(column)
    return made


def _reader_of(subject: str, latest: RegisteredSchema) -> RegisteredSchema | None:
    if latest.kind not in ("AVRO", "JSON"):
        raise RegistryError(f"subject {subject}: its schema is of type {latest.kind}; Avro and JSON can be decoded")
    return latest if latest.kind == "AVRO" else None


def _column_type(reader: RegisteredSchema) -> DataType:
    try:
        return avro_column(parse_avro(reader.text, reader.references)).spark
    except NotDecodable as error:
        raise RegistryError(f"the reader's schema cannot be used: {error}") from error
