"""What Spark asks for first: the format's name, a row's columns, and who reads and writes.

Owns nothing else: an instance is pickled from process to process, and readers and writers are made anew in each. What
these need is imported when they are made.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_lamina.columns import Field


class DefaultSource(DataSource):
    """``format("lamina")``"""

    @classmethod
    def name(cls) -> str:
        return "lamina"

    def schema(self) -> str:
        from pyspark_lamina.columns import INCLUDE_HEADERS, row_schema
        from pyspark_lamina.option_values import boolean
        from pyspark_lamina.sentences import in_one_sentence

        with in_one_sentence():
            return row_schema(with_headers=boolean(INCLUDE_HEADERS, self.options.get(INCLUDE_HEADERS, "false")))

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_lamina.batch_reading import TopicReader
        from pyspark_lamina.columns import wanted_columns
        from pyspark_lamina.options import parse_options
        from pyspark_lamina.sentences import in_one_sentence

        with in_one_sentence():
            return TopicReader(parse_options(self.options, is_stream=False), wanted_columns(_fields(schema)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if find_spec("pyspark.sql.streaming.datasource") is None:
            from pyspark_lamina.old_spark import NoStreams

            return NoStreams()
        from pyspark_lamina.stream_reading import TopicStreamReader

        return TopicStreamReader(self.options, _fields(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_lamina.sentences import in_one_sentence
        from pyspark_lamina.sink_options import parse_sink_options
        from pyspark_lamina.writing import BatchWriter

        with in_one_sentence():
            return BatchWriter(parse_sink_options(self.options, is_stream=False), _types(schema), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Output mode "complete" asks to overwrite: as with Spark's own Kafka sink, all rows are written again."""
        from pyspark_lamina.sentences import in_one_sentence
        from pyspark_lamina.sink_options import parse_sink_options
        from pyspark_lamina.stream_writing import StreamWriter

        with in_one_sentence():
            return StreamWriter(parse_sink_options(self.options, is_stream=True), _types(schema))


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _fields(schema: StructType) -> "list[Field]":
    from pyspark_lamina.columns import Field

    return [Field(field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields]
