"""What can be written, and which columns nobody should lose without a word."""

import pytest

from lamina.producing.columns import check_columns
from lamina.producing.errors import WriteError

READ = [
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
]


def test_what_was_read_can_be_written_and_other_columns_are_left_out() -> None:
    check_columns(READ, None)
    check_columns([("value", "string"), ("price", "double"), ("id", "bigint")], "t")
    check_columns([("key", "string"), ("keys", "string"), ("value", "string"), ("topics", "string")], "t")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (("ky", "value"), "there is no column key, but one called ky: is that meant? Rename or drop that one"),
        (("Key", "value"), "there is no column key, but one called Key: is that meant?"),
        (("key", "value", "header"), "there is no column headers, but one called header: is that meant?"),
        (("value", "partitions"), "there is no column partition, but one called partitions: is that meant?"),
        (("key", "valu"), "a column value is needed; it is not among key, valu, but one called valu: is that meant?"),
    ],
)
def test_a_column_that_was_probably_meant_is_refused_with_its_name(columns: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(WriteError) as caught:
        check_columns([(name, "string") for name in columns], "t")
    assert str(caught.value).startswith(sentence)


def test_a_topic_that_is_an_option_needs_no_column() -> None:
    columns = [("value", "string"), ("topics", "string")]
    check_columns(columns, "t")
    with pytest.raises(WriteError, match="no topic is given"):
        check_columns(columns, None)
