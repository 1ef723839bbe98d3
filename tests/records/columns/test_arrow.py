"""Arrow batches hold what the plain reader reads, cut as asked; what lies is told in one sentence."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from lamina.errors import CorruptMessage
from lamina.records.batch import HEADER_BYTES, Codec, read_header, walk
from lamina.records.columns.arrow import MIN_BATCH_BYTES, TYPES, RecordBatches, record_batches, schema_of
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch, build_empty_batch, read_records
from tests.records.forgery import reseal, with_payload
from tests.records.strategies import records

COLUMNS = tuple(TYPES)
EVERYTHING = (0, 2**63 - 1)
TIMES_MS = st.integers(-(2**62), 2**62)


def read(
    data: bytes | bytearray,
    offsets: tuple[int, int] = EVERYTHING,
    *,
    columns: Sequence[str] = COLUMNS,
    aborted: Sequence[tuple[int, int]] | None = None,
    max_batch_bytes: int = 1 << 20,
) -> RecordBatches:
    return record_batches(
        bytes(data),
        columns=columns,
        start_offset=offsets[0],
        end_offset=offsets[1],
        aborted=aborted,
        max_batch_bytes=max_batch_bytes,
        name="orders-0",
    )


def rows(found: Iterable[Any]) -> list[dict[str, Any]]:
    """Of batches that Arrow itself finds valid; times as integers, for not all of them are dates."""
    listed = []
    for batch in found:
        batch.validate(full=True)
        listed += batch.set_column(
            batch.schema.get_field_index("timestamp"), "timestamp", batch["timestamp"].cast("int64")
        ).to_pylist()
    return listed


def plain_rows(data: bytes | bytearray, offsets: tuple[int, int] = EVERYTHING) -> list[dict[str, Any]]:
    found = []
    for position, header in walk(bytes(data)):
        for record in read_records(data, position, header, 1 << 20):
            if header.is_control or not offsets[0] <= record.offset < offsets[1]:
                continue
            sequence = (header.base_sequence + record.offset - header.base_offset) & (2**31 - 1)
            us = record.timestamp * 1000
            found.append(
                {
                    "key": record.key,
                    "value": record.value,
                    "headers": [{"key": key.decode(errors="replace"), "value": value} for key, value in record.headers]
                    or None,
                    "offset": record.offset,
                    "timestamp": us if -(2**63) < us < 2**63 else None,
                    "timestampType": int(header.is_log_append_time),
                    "producer_id": header.producer_id,
                    "producer_epoch": header.producer_epoch,
                    "sequence": -1 if header.base_sequence < 0 else sequence,
                    "leader_epoch": header.leader_epoch,
                    "batch_position": position,
                }
            )
    return found


@st.composite
def logs(draw: st.DrawFn) -> bytearray:
    """Batches of every codec, cleaned and whole, of producers with and without ids."""
    data = bytearray()
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 6))):
        found = draw(records(first_offset=offset, gaps=draw(st.booleans())))
        has_producer = draw(st.booleans())
        batch = build_batch(
            found,
            codec=draw(st.sampled_from(Codec)),
            base_offset=offset,
            last_offset=found[-1].offset + draw(st.integers(0, 5)),
            leader_epoch=draw(st.integers(0, 2**31 - 1)),
            producer_id=draw(st.integers(0, 2**62)) if has_producer else -1,
            producer_epoch=draw(st.integers(0, 2**15 - 1)) if has_producer else -1,
            base_sequence=draw(st.integers(0, 2**31 - 1)) if has_producer else -1,
            log_append_time_ms=draw(st.none() | TIMES_MS),
            delete_horizon_ms=draw(st.none() | st.integers(0, 2**61)),
        )
        if draw(st.integers(0, 6)) == 0:
            batch = build_empty_batch(read_header(batch))
        data += batch
        offset = read_header(batch).next_offset + draw(st.integers(0, 100))
    return data


@given(logs(), st.sampled_from([1, MIN_BATCH_BYTES, 1 << 20]), st.data())
def test_the_records_are_those_of_the_plain_reader(
    data: bytearray, max_batch_bytes: int, choices: st.DataObject
) -> None:
    ends = [header.next_offset for _, header in walk(bytes(data))]
    near = st.sampled_from(ends or [0]).flatmap(lambda end: st.integers(max(end - 9, 0), end + 3))
    for offsets in (EVERYTHING, (choices.draw(near), choices.draw(near))):
        found = read(data, offsets, max_batch_bytes=max_batch_bytes)
        assert rows(found) == plain_rows(data, offsets)
        reached = min(ends[-1] if ends else 0, offsets[1])
        assert found.next_offset == max(reached, offsets[0])


@given(logs(), st.lists(st.sampled_from(COLUMNS), unique=True, min_size=1))
def test_only_the_columns_that_were_asked_for_are_there(data: bytearray, columns: list[str]) -> None:
    wanted = [{column: row[column] for column in columns} for row in rows(read(data))]
    found: list[dict[str, Any]] = []
    for batch in read(data, columns=columns):
        assert batch.schema == schema_of(columns)
        if "timestamp" in columns:
            batch = batch.set_column(columns.index("timestamp"), "timestamp", batch["timestamp"].cast("int64"))
        found += batch.to_pylist()
    assert found == wanted


@given(logs(), st.integers(0, 2**16))
def test_what_is_cut_off_at_the_end_is_left_out(data: bytearray, cut: int) -> None:
    shorter = data[: max(len(data) - cut, 0)]
    found = read(shorter)
    assert rows(found) == plain_rows(shorter)
    assert found.next_offset == max((header.next_offset for _, header in walk(bytes(shorter))), default=0)


def test_batches_grow_to_the_size_asked_for_across_batches_and_codecs() -> None:
    data = bytearray()
    for number in range(200):
        codec = Codec(number % 5)
        data += build_batch([Record(number * 10 + index, 0, b"key", b"v" * 100) for index in range(10)], codec=codec)
    sizes = [batch.nbytes for batch in read(data, columns=["key", "value", "offset"], max_batch_bytes=64 * 1024)]
    assert len(sizes) == 4
    assert all(60 * 1024 < size <= 64 * 1024 for size in sizes[:-1])


def test_a_record_larger_than_a_batch_has_one_to_itself() -> None:
    found = [Record(0, 0, b"a", b"1"), Record(1, 0, b"b", b"x" * 5000), Record(2, 0, b"c", None)]
    for codec in Codec:
        batches = list(read(build_batch(found, codec=codec), columns=["value"], max_batch_bytes=MIN_BATCH_BYTES))
        assert [batch["value"].to_pylist() for batch in batches] == [[b"1"], [b"x" * 5000], [None]]


def transaction(producer_id: int, offset: int) -> bytearray:
    return build_batch(
        [Record(offset, 0, b"k", b"%d" % producer_id)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(kind: ControlType, producer_id: int, offset: int) -> bytearray:
    return build_marker(
        kind, offset=offset, timestamp_ms=0, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
    )


def test_aborted_transactions_are_left_out_and_markers_always() -> None:
    data = transaction(1, 0) + transaction(2, 1) + marker(ControlType.ABORT, 1, 2) + transaction(1, 3)
    data += build_batch([Record(4, 0, b"k", b"plain")]) + marker(ControlType.COMMIT, 2, 5)
    data += marker(ControlType.COMMIT, 1, 6) + transaction(2, 7) + marker(ControlType.ABORT, 2, 8)
    assert [row["offset"] for row in rows(read(data))] == [0, 1, 3, 4, 7]
    assert [row["offset"] for row in rows(read(data, aborted=[]))] == [0, 1, 3, 4, 7]
    assert [row["offset"] for row in rows(read(data, aborted=[(2, 7), (1, 0)]))] == [1, 3, 4]
    assert [row["offset"] for row in rows(read(data, (3, 8), aborted=[(2, 7)]))] == [3, 4]


LIES = {
    "magic": (reseal(build_batch([Record(0, 0, b"k", b"v")]), magic=1), "magic 1"),
    "crc": (reseal(build_batch([Record(0, 0, b"k", b"v")]), crc=7), "CRC"),
    "length": (reseal(build_batch([Record(0, 0, b"k", b"v")]), length=3), "too few for a header"),
    "count": (reseal(build_batch([Record(0, 0, b"k", b"v")]), record_count=2**31 - 1), "where record 1 should begin"),
    "count below zero": (reseal(build_batch([Record(0, 0, b"k", b"v")]), record_count=-1), "-1 records"),
    "too few counted": (reseal(build_batch([Record(i, 0, b"k", b"v") for i in (0, 1)]), record_count=1), "follow"),
    "offset delta": (
        reseal(build_batch([Record(i, 0, b"k", b"v") for i in (0, 9)]), last_offset_delta=3),
        "outside of its batch",
    ),
    "record length": (with_payload(b"\x7f" + bytes(10)), "claims -64 bytes"),
    "key length": (with_payload(b"\x0e\0\0\0\x64\0\0\0"), "the key of record 0 reaches 47 bytes past"),
    "header count": (with_payload(b"\x0e\0\0\0\x01\x01\xfe\x7f"), "record 0 counts 8191 headers"),
    "varint": (with_payload(b"\xff" * 12), "number"),
    "codec": (with_payload(b"not gzip", codec=Codec.NONE), "claims"),
    "not gzip": (reseal(build_batch([Record(0, 0, b"k", b"v")]), attributes=1), "cannot be decoded"),
    "no codec": (reseal(build_batch([Record(0, 0, b"k", b"v")]), attributes=5), "no codec has id 5"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_batch_that_lies_gives_one_sentence_with_name_position_and_offset(lie: str) -> None:
    good = build_batch([Record(offset, 0, b"k", b"v") for offset in range(40, 44)])
    batch, reason = LIES[lie]
    batch = bytearray(batch)
    batch[:8] = (44).to_bytes(8)
    data = good + batch + bytes(200)
    with pytest.raises(CorruptMessage) as raised:
        rows(read(data))
    assert str(raised.value).startswith(f"orders-0 is damaged at position {len(good)}, offset 44: ")
    assert reason in str(raised.value)


@given(records(), st.sampled_from([Codec.NONE, Codec.GZIP]), st.data())
def test_any_changed_byte_inside_is_read_or_refused(found: list[Record], codec: Codec, choices: st.DataObject) -> None:
    """Under a CRC that is right again: what is accepted is what the plain reader accepts."""
    whole = build_batch(found, codec=Codec.NONE)
    payload = bytearray(whole[HEADER_BYTES:])
    for _ in range(choices.draw(st.integers(1, 3))):
        payload[choices.draw(st.integers(0, len(payload) - 1))] = choices.draw(st.integers(0, 255))
    packed = with_payload(bytes(payload), codec=codec)
    data = reseal(packed, record_count=len(found), last_offset_delta=max(len(found) - 1, 0))
    try:
        native = rows(read(data))
    except CorruptMessage as error:
        assert "\n" not in str(error)
        return
    assert native == plain_rows(data)


def test_no_columns_and_unknown_ones_are_refused() -> None:
    with pytest.raises(ValueError, match="no columns"):
        read(b"", columns=[])
    with pytest.raises(ValueError, match="topic"):
        read(b"", columns=["key", "topic"])
