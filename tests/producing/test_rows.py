"""Rows become batches that the plain reader reads as they were, each row where Java's producer would have sent it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import pyarrow as pa

from lamina.peer.transacting import Producer
from lamina.producing.columns import check_columns
from lamina.producing.errors import WriteError
from lamina.producing.producer import Batch
from lamina.producing.properties import BatchFormat
from lamina.producing.rows import HEADERS, RowEncoder
from lamina.records.batch import Codec, check_crc, read_header
from lamina.records.record import Record, read_records

NOW_MS = 1_700_000_000_000
LIMIT = 1 << 30
PRODUCER = Producer(7, 3)

fields = st.none() | st.binary(max_size=200)
headers = st.none() | st.lists(st.tuples(st.text(max_size=20), fields), max_size=4)
rows = st.lists(st.tuples(fields, fields, headers), min_size=1, max_size=60)


def table(given_rows: Sequence[tuple[Any, Any, Any]], kind: Any = None) -> Any:
    kind = pa.binary() if kind is None else kind
    keys, values, lists = zip(*given_rows, strict=True)
    structs = [None if one is None else [{"key": key, "value": value} for key, value in one] for one in lists]
    arrays = [pa.array(keys, kind), pa.array(values, kind), pa.array(structs, HEADERS)]
    return pa.table(dict(zip(("key", "value", "headers"), arrays, strict=True)))


def encoder(
    batch_bytes: int = 1 << 20, codec: Codec = Codec.NONE, topic: str | None = "t", drawn: float = 0.0
) -> RowEncoder:
    batch_format = BatchFormat(batch_bytes, codec)
    return RowEncoder(topic, batch_format, PRODUCER, lambda: NOW_MS, lambda: drawn, is_transactional=True)


def read(batch: Batch) -> list[Record]:
    header = read_header(batch.data)
    check_crc(batch.data, 0, header)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (*PRODUCER, True)
    found = read_records(batch.data, 0, header, LIMIT)
    assert len(found) == header.record_count == batch.records == header.last_offset_delta + 1
    assert {one.timestamp for one in found} == {NOW_MS}
    return found


def flat(record: Record) -> tuple[Any, Any, Any]:
    return record.key, record.value, [(key.decode(), value) for key, value in record.headers]


@given(rows, st.sampled_from([1, 64, 300, 1 << 20]), st.integers(0, 3))
def test_rows_come_back_in_order(given_rows: list[Any], batch_bytes: int, start: int) -> None:
    wanted = [(key, value, given_headers or []) for key, value, given_headers in given_rows][start:]
    batches = list(encoder(batch_bytes).encode(table(given_rows).slice(start), {"t": 1}))
    assert [flat(record) for batch in batches for record in read(batch)] == wanted
    sequence = 0
    for batch in batches:
        header = read_header(batch.data)
        assert header.base_sequence == sequence
        sequence += batch.records
        assert batch.records == 1 or header.length <= batch_bytes + 49


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=40), st.integers(1, 9))
def test_keys_go_where_javas_default_partitioner_sends_them(keys: list[bytes], partitions: int) -> None:
    batches = encoder().encode(table([(key, b"", None) for key in keys]), {"t": partitions})
    for batch in batches:
        for record in read(batch):
            assert record.key is not None
            assert batch.partition == (murmur2(record.key) & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_every_codec(codec: Codec) -> None:
    given_rows = [(b"key%d" % number, b"value" * 20, [("h", b"1")]) for number in range(500)]
    batches = list(encoder(20_000, codec).encode(table(given_rows), {"t": 3}))
    found = [flat(record) for batch in batches for record in read(batch)]
    assert sorted(found) == sorted((key, value, given_headers or []) for key, value, given_headers in given_rows)
    assert {read_header(batch.data).codec_id for batch in batches} == {codec}
    assert len(batches) > 3


def test_strings_are_written_as_utf_8() -> None:
    (batch,) = encoder().encode(table([("ключ", "значение", None)], pa.string()), {"t": 1})
    (record,) = read(batch)
    assert (record.key, record.value) == ("ключ".encode(), "значение".encode())


def test_rows_without_keys_fill_one_partition_after_the_other() -> None:
    given_rows = [(None, b"x" * 100, None)] * 40
    batches = list(encoder(1_000).encode(table(given_rows), {"t": 3}))
    assert {batch.partition for batch in batches} == {0, 1, 2}
    assert sum(batch.records for batch in batches) == 40


@pytest.mark.parametrize(("drawn", "partition"), [(0.0, 0), (0.34, 1), (0.999, 2)])
def test_rows_without_keys_begin_at_a_partition_that_is_drawn_and_stay_there_for_a_batch(
    drawn: float, partition: int
) -> None:
    writer = encoder(1_000, drawn=drawn)
    given_rows = table([(None, b"x" * 100, None)] * 4)
    found = [batch.partition for _ in range(2) for batch in writer.encode(given_rows, {"t": 3})]
    assert found == [partition, partition]
    assert [batch.partition for batch in writer.encode(given_rows, {"t": 3})] == sorted(
        {partition, (partition + 1) % 3}
    )


def test_a_partition_that_is_given_is_taken_and_null_is_as_none() -> None:
    given_rows = table([(b"k", b"a", None), (b"k", b"b", None), (b"k", b"c", None)])
    given_rows = given_rows.append_column("partition", pa.array([4, None, 0], pa.int32()))
    found = {batch.partition: [one.value for one in read(batch)] for batch in encoder().encode(given_rows, {"t": 5})}
    assert found[4] == [b"a"]
    assert b"c" in found[0]
    assert sum(map(len, found.values())) == 3


@pytest.mark.parametrize("wanted", [-1, 5])
def test_a_partition_that_does_not_exist_is_one_sentence(wanted: int) -> None:
    given_rows = table([(b"k", b"a", None)]).append_column("partition", pa.array([wanted], pa.int32()))
    with pytest.raises(
        WriteError, match=f"a row asks for partition {wanted} of topic t, which has 5 partitions, counted from 0"
    ):
        list(encoder().encode(given_rows, {"t": 5}))


def test_rows_go_to_the_topics_that_they_name() -> None:
    given_rows = table([(b"k", b"a", None), (b"k", b"b", None), (b"k", b"c", None)])
    given_rows = given_rows.append_column("topic", pa.array(["x", "y", "x"]))
    writer = encoder(topic=None)
    assert writer.topics(given_rows) == ["x", "y"]
    found = {batch.topic: [one.value for one in read(batch)] for batch in writer.encode(given_rows, {"x": 1, "y": 1})}
    assert found == {"x": [b"a", b"c"], "y": [b"b"]}


def test_a_row_without_a_topic_is_one_sentence() -> None:
    given_rows = table([(b"k", b"a", None)]).append_column("topic", pa.array([None], pa.string()))
    with pytest.raises(WriteError, match="a row has no topic"):
        encoder(topic=None).topics(given_rows)


def test_a_header_without_a_key_is_one_sentence() -> None:
    with pytest.raises(WriteError, match="a header without a key"):
        list(encoder().encode(table([(b"k", b"a", [(None, b"1")])]), {"t": 1}))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([("value", "string")], "no topic is given"),
        ([("topic", "string"), ("key", "binary")], "a column value is needed; it is not among topic, key"),
        ([("topic", "int"), ("value", "string")], "column topic is of type int; it must be string"),
        ([("topic", "string"), ("value", "double")], "column value is of type double; it must be string or binary"),
        ([("topic", "string"), ("value", "string"), ("partition", "bigint")], "column partition is of type bigint"),
        ([("topic", "string"), ("value", "string"), ("headers", "string")], "column headers is of type string"),
    ],
)
def test_columns_that_cannot_be_written_are_one_sentence(columns: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(WriteError, match=sentence):
        check_columns(columns, None)


def test_columns_with_other_names_are_left_alone() -> None:
    check_columns([("value", "string"), ("count", "bigint")], "t")
