"""Records as lines of JSON, escapes, and other small forms of the command line."""

import pytest

from lamina.cli.consume.bounds import EARLIEST, LATEST, Bound, Kind, parse_bound, resolve
from lamina.cli.consume.record_format import writer_of
from lamina.cli.escapes import unescape
from lamina.cli.printing.text import bytes_text, counted, offsets_text
from lamina.cli.produce.record_parsing import Given, json_parser, line_parser
from lamina.cli.record_json import BadRecord, GivenRecord, parse_record

# JSON


def test_everything_that_a_producer_decides_is_taken() -> None:
    line = (
        b'{"topic":"other","offset":9,"key":"k","value":"/wA=","value_encoding":"base64","partition":3,'
        b'"timestamp":1700000000000,"headers":[{"key":"a","value":"b"},{"key":"a","value":null}]}'
    )
    headers = [("a", b"b"), ("a", None)]
    assert parse_record(line) == GivenRecord(b"\xff\0", b"k", headers, 3, 1_700_000_000_000)  # type: ignore[arg-type]


def test_the_least_is_a_value() -> None:
    assert parse_record(b'{"value":""}') == GivenRecord(b"")
    assert parse_record(b'{"value":null,"key":"k"}') == GivenRecord(None, b"k")
    assert parse_record(b'{"value":"v","headers":{"a":"b"}}').headers == [("a", b"b")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"key":"k"}', "it has no value"),
        (b'{"value":"v","vlaue":"x"}', "no field 'vlaue'"),
        (b'{"value":1}', "value is not a string"),
        (b'{"value":"v","value_encoding":"hex"}', "text or base64"),
        (b'{"value":"!","value_encoding":"base64"}', "not base64"),
        (b'{"value":"\\ud800"}', "surrogate"),
        (b'{"value":"v","partition":-1}', "partition is -1"),
        (b'{"value":"v","partition":true}', "partition is True"),
        (b'{"value":"v","timestamp":0}', "timestamp is 0"),
        (b'{"value":"v","timestamp":1.5}', "timestamp is 1.5"),
        (b'{"value":"v","headers":"x"}', "not a list of objects"),
        (b'{"value":"v","headers":[{"value":"x"}]}', "no key"),
        (b'{"value":"v","headers":[{"key":"a","x":1}]}', "no field 'x'"),
        (b'{"value":"v","headers":[{"key":"a\\u0000","value":"x"}]}', "zero byte"),
        (b'{"value":"v","headers":[{"key":"/w==","key_encoding":"base64","value":"x"}]}', "not UTF-8"),
    ],
)
def test_what_is_no_record_is_named(line: bytes, said: str) -> None:
    with pytest.raises(BadRecord, match=said):
        parse_record(line)


def test_the_command_line_wins_over_the_line() -> None:
    parse = json_parser(Given([("b", b"2")], 7, 5))
    record = parse(b'{"value":"v","partition":1,"timestamp":1,"headers":[{"key":"a","value":"1"}]}')
    assert record == GivenRecord(b"v", None, [("a", b"1"), ("b", b"2")], 7, 5)
    assert parse(b" \r") is None


# Lines


def test_a_line_is_divided_at_the_first_separator() -> None:
    parse = line_parser(b"::", False, False, Given())
    assert parse(b"k::v::w") == GivenRecord(b"v::w", b"k")
    assert parse(b"k::") == GivenRecord(b"", b"k")
    with pytest.raises(BadRecord, match="--key-optional"):
        parse(b"k:v")


def test_lines_may_lack_a_key_and_empty_values_may_be_tombstones() -> None:
    parse = line_parser(b":", True, True, Given())
    assert [parse(b"v"), parse(b"k:"), parse(b"")] == [GivenRecord(b"v"), GivenRecord(None, b"k"), GivenRecord(b"")]


def test_escapes() -> None:
    assert unescape(r"a\t\n\r\0\xff\\ü") == b"a\t\n\r\0\xff\\" + "ü".encode()
    for text in ("\\", "\\q", "\\x1"):
        with pytest.raises(ValueError, match="is not an escape"):
            unescape(text)


# Where to read


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("17", Bound(Kind.OFFSET, 17)),
        ("-17", Bound(Kind.BEFORE_END, 17)),
        ("-1s", Bound(Kind.TIME, 9_000)),
        ("@5000", Bound(Kind.TIME, 5_000)),
        ("@-1s", Bound(Kind.TIME, 9_000)),
        ("1970-01-01T00:00:02Z", Bound(Kind.TIME, 2_000)),
    ],
)
def test_where_to_begin_and_to_end(text: str, bound: Bound) -> None:
    assert parse_bound(text, 10_000) == bound


@pytest.mark.parametrize("text", ["", "soon", "1.5", "--1", "9" * 50])
def test_what_is_no_place_in_a_log(text: str) -> None:
    with pytest.raises(ValueError, match="neither an offset"):
        parse_bound(text, 0)


class Clockwork:
    def at(self, timestamp_ms: int, end: object) -> dict[int, int]:
        return {0: timestamp_ms, 1: timestamp_ms}


def test_places_as_offsets() -> None:
    first, end = {0: 5, 1: 0}, {0: 20, 1: 3}
    places = [EARLIEST, LATEST, Bound(Kind.OFFSET, 7), Bound(Kind.BEFORE_END, 10), Bound(Kind.TIME, 9)]
    assert [resolve(place, first, end, Clockwork()) for place in places] == [
        first,
        end,
        {0: 7, 1: 7},
        {0: 10, 1: 0},
        {0: 9, 1: 9},
    ]


# What a person reads


@pytest.mark.parametrize("text", ["values", "%x", "%", "%k\\q"])
def test_a_format_that_is_not_there(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a format|means nothing in a template|is not an escape"):
        writer_of(text)


def test_amounts() -> None:
    sizes = [0, 1, 999, 1000, 1_250_000, 999_960, 10**16]
    shown = ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "1.2 MB", "1.0 MB", "10000.0 TB"]
    assert [bytes_text(size) for size in sizes] == shown
    assert [counted(1, "record"), counted(1000, "record")] == ["1 record", "1,000 records"]
    assert [offsets_text(3, 4), offsets_text(3, 6)] == ["3", "3-5"]
