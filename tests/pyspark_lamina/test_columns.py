"""A row's columns, and what may stand in ``.schema(…)``."""

import pytest

from lamina.arrow.errors import ReadError
from pyspark_lamina.columns import Field, row_schema, wanted_columns


def test_a_row_has_the_columns_of_sparks_own_source() -> None:
    plain = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    )
    assert row_schema(with_headers=False) == plain
    assert row_schema(with_headers=True) == f"{plain}, headers array<struct<key:string,value:binary>>"


def test_any_columns_may_be_wanted_in_any_order() -> None:
    fields = [Field("offset", "bigint", False), Field("headers", "array<struct<key:string,value:binary>>")]
    assert wanted_columns(fields) == fields


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([], "the schema has no column; name some of key, value"),
        ([("kye", "binary")], "the schema has a column 'kye', and there are only key, value"),
        ([("key", "string")], "column key is binary, not string; cast it after it was read"),
        ([("key", "binary"), ("key", "binary")], "the schema names a column twice: key, key"),
    ],
)
def test_what_is_no_column_is_told(fields: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(ReadError, match=f"^{sentence}"):
        wanted_columns([Field(*field) for field in fields])
