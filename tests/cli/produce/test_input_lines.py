"""Lines out of files and pipes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.cli.produce.input_lines import LineSplitter, TooLong, lines_of


@given(st.lists(st.binary(max_size=12)))
def test_however_bytes_come_the_lines_are_the_same(parts: list[bytes]) -> None:
    splitter = LineSplitter(10**6)
    lines = [line for part in parts for line in splitter.feed(part)] + splitter.finish()
    whole = b"".join(parts).split(b"\n")
    assert lines == (whole[:-1] if whole[-1] == b"" else whole)


@contextmanager
def pipe_with(data: bytes) -> Iterator[int]:
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def read(data: bytes, max_line_bytes: int) -> list[bytes]:
    with pipe_with(data) as descriptor:
        return [line for lines in lines_of(descriptor, max_line_bytes, lambda: False, lambda: None) for line in lines]


def test_lines_are_kept_as_they_are() -> None:
    assert read(b"a\r\n\n\0\xff\nlast", 100) == [b"a\r", b"", b"\0\xff", b"last"]
    assert read(b"", 100) == []


@pytest.mark.parametrize("data", [b"fine\n" + b"x" * 11 + b"\nfine\n", b"fine\n" + b"x" * 11])
def test_a_line_that_is_too_long_ends_it_behind_those_before(data: bytes) -> None:
    with pipe_with(data) as descriptor:
        lists = lines_of(descriptor, 10, lambda: False, lambda: None)
        assert next(lists) == [b"fine"]
        with pytest.raises(TooLong):
            next(lists)


def test_it_stops_when_told_and_calls_while_nothing_comes() -> None:
    reading, writing = os.pipe()
    idle: list[None] = []
    try:
        assert list(lines_of(reading, 10, lambda: len(idle) == 2, lambda: idle.append(None))) == []
    finally:
        os.close(reading)
        os.close(writing)
    assert len(idle) == 2
