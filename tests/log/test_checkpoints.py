"""Offset checkpoints: the text of fact 88, round trips and damage; formats.md §2.5."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.checkpoints import CheckpointError, format_offsets, parse_offsets, read_offsets, write_offsets
from lamina.log.files import Disk
from lamina.topic_partition import TopicPartition

topics = st.text("abcXYZ0189._-", min_size=1, max_size=20)
offsets = st.dictionaries(st.tuples(topics, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), max_size=10)


def test_the_text_is_kafkas() -> None:
    assert format_offsets({("a-topic", 0): 5, ("b", 12): 0}) == b"0\n2\na-topic 0 5\nb 12 0\n"
    assert format_offsets({}) == b"0\n0\n"


@given(offsets)
def test_what_is_formatted_is_parsed(expected: dict[TopicPartition, int]) -> None:
    assert parse_offsets(format_offsets(expected)) == expected


def test_fields_are_split_by_any_white_space_and_an_empty_file_has_no_entries() -> None:
    assert parse_offsets(b"0\n1\nt\t 0   7\n") == {("t", 0): 7}
    assert parse_offsets(b"") == {}


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "0\n",
        "0\n1\n",
        "0\n2\nt 0 1\n",
        "0\n1\nt 0 1\nt 1 1\n",
        "0\n1\nt 0\n",
        "0\n1\nt 0 1 2\n",
        "0\n1\nt x 1\n",
        "0\n1\nt 0 --1\n",
        "0\n1\nt 0 -1\n",
        "0\n1\nt -1 0\n",
        "0\n1\nt 0 -\n",
        "0\n1\nt 0 ²\n",
        "0\n1\nt 0 " + "9" * 5000 + "\n",
        "0\n1\nt 0 9223372036854775808\n",
        "x\n",
    ],
)
def test_what_kafka_would_not_write_is_a_checkpoint_error(text: str) -> None:
    with pytest.raises(CheckpointError):
        parse_offsets(text.encode())


@given(st.binary(max_size=60) | st.text("0123 \n-t", max_size=60).map(str.encode))
def test_malformed_input_is_a_checkpoint_error(data: bytes) -> None:
    try:
        parse_offsets(data)
    except CheckpointError as error:
        assert "checkpoint" in str(error)


def test_a_checkpoint_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    assert read_offsets(Disk(), str(path)) == {}
    write_offsets(Disk(), str(path), {("t", 0): 1234})
    write_offsets(Disk(), str(path), {("t", 0): 5})
    assert read_offsets(Disk(), str(path)) == {("t", 0): 5}
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
