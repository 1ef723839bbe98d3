from collections.abc import Callable
from dataclasses import replace

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    UnsupportedCompression,
)
from lamina.records.batch import HEADER_BYTES, Codec, check_crc, read_header, stamp_max_timestamp
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch, read_records
from lamina.records.record_walk import MAX_RECORD_ERRORS, RecordWalk, walk_records
from lamina.records.validate import BatchRules, validate_batch
from tests.records.forgery import reseal, with_payload
from tests.records.strategies import records
from tests.records.vectors import V1, V1_RECORDS, V4

NOW_MS = 2_000_000_000_000
DAY_MS = 86_400_000
FOREVER_MS = 2**63 - 1

RULES = BatchRules(
    max_message_bytes=1_048_588,
    max_decompressed_bytes=1_048_588,
    is_compacted=False,
    is_log_append_time=False,
    timestamp_before_max_ms=FOREVER_MS,
    timestamp_after_max_ms=FOREVER_MS,
)


def rejects(error: type[KafkaError], batch: bytes | bytearray, rules: BatchRules = RULES) -> KafkaError:
    with pytest.raises(error) as caught:
        validate_batch(batch, rules, NOW_MS)
    assert type(caught.value) is error
    return caught.value


def test_a_good_batch_is_taken_with_its_true_facts() -> None:
    validated = validate_batch(memoryview(V1), RULES, NOW_MS)
    assert validated.header == read_header(V1)
    assert (validated.max_timestamp, validated.offset_delta_of_max_timestamp) == (283843, 0)
    assert validated.decompressed_bytes == len(V1) - HEADER_BYTES
    assert validated.record_count == 2


@given(records(first_offset=0), st.sampled_from(Codec), st.booleans())
def test_every_batch_that_a_client_may_send_is_taken(found: list[Record], codec: Codec, is_transactional: bool) -> None:
    batch = build_batch(
        found,
        codec=codec,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=is_transactional,
    )
    validated = validate_batch(batch, RULES, NOW_MS)
    times = [record.timestamp for record in found]
    assert validated.max_timestamp == max(times)
    assert validated.offset_delta_of_max_timestamp == times.index(max(times))
    assert read_records(batch, 0, validated.header, validated.decompressed_bytes) == found


@pytest.mark.parametrize("codec", Codec)
def test_a_max_timestamp_that_is_not_the_records_is_found_and_can_be_corrected(codec: Codec) -> None:
    honest = build_batch(V1_RECORDS, codec=codec)
    batch = reseal(honest, max_timestamp=5)
    validated = validate_batch(batch, RULES, NOW_MS)
    assert validated.header.max_timestamp == 5
    assert validated.max_timestamp == 283843
    stamp_max_timestamp(batch, 0, validated.max_timestamp)
    assert batch == honest


BAD_BATCHES: dict[str, tuple[type[KafkaError], Callable[[], bytes | bytearray]]] = {
    "nothing": (InvalidRecord, lambda: b""),
    "half a header": (InvalidRecord, lambda: V1[:40]),
    "a batch that is cut off": (InvalidRecord, lambda: V1[:-1]),
    "two batches": (InvalidRecord, lambda: V1 + V1),
    "a byte after the batch": (InvalidRecord, lambda: V1 + b"\x00"),
    "magic 0": (InvalidRecord, lambda: reseal(V1, magic=0)),
    "magic 1": (InvalidRecord, lambda: reseal(V1, magic=1)),
    "magic 3": (CorruptMessage, lambda: reseal(V1, magic=3)),
    "a negative magic": (CorruptMessage, lambda: reseal(V1, magic=-1)),
    "a length too small for a header": (CorruptMessage, lambda: reseal(V1, length=48)),
    "a negative length": (CorruptMessage, lambda: reseal(V1, length=-1)),
    "a wrong CRC": (CorruptMessage, lambda: reseal(V1, crc=1)),
    "a base offset": (InvalidRecord, lambda: reseal(V1, base_offset=1)),
    "a negative base offset": (InvalidRecord, lambda: reseal(V1, base_offset=-1)),
    "no records": (InvalidRecord, lambda: reseal(V4, base_offset=0)),
    "a negative count": (InvalidRecord, lambda: reseal(V1, record_count=-1)),
    "a count above the range": (InvalidRecord, lambda: reseal(V1, record_count=3)),
    "a count below the range": (InvalidRecord, lambda: reseal(V1, record_count=1)),
    "a range and count that the records do not fill": (
        InvalidRecord,
        lambda: reseal(V1, record_count=3, last_offset_delta=2),
    ),
    "a range and count that the records overfill": (
        InvalidRecord,
        lambda: reseal(V1, record_count=1, last_offset_delta=0),
    ),
    "a control batch": (
        InvalidRecord,
        lambda: build_marker(
            ControlType.ABORT, offset=0, timestamp_ms=1, producer_id=1, producer_epoch=0, coordinator_epoch=0
        ),
    ),
    "a producer without a sequence": (InvalidRecord, lambda: reseal(V1, producer_id=9, producer_epoch=0)),
    "a producer without an epoch": (InvalidRecord, lambda: reseal(V1, producer_id=9, base_sequence=0)),
    "a delete horizon": (InvalidRecord, lambda: build_batch(V1_RECORDS, delete_horizon_ms=9)),
    "log-append time": (InvalidTimestamp, lambda: build_batch(V1_RECORDS, log_append_time_ms=9)),
    "an unknown codec": (UnsupportedCompression, lambda: reseal(V1, attributes=5)),
    "data that its codec cannot read": (InvalidRecord, lambda: reseal(V1, attributes=Codec.ZSTD)),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_batch_that_breaks_a_rule_gets_kafkas_error(name: str) -> None:
    """protocol.md §2.35."""
    error, build = BAD_BATCHES[name]
    rejects(error, build())


def test_a_sequence_without_a_producer_is_taken_as_kafka_takes_it() -> None:
    """aiokafka sends it."""
    assert validate_batch(reseal(V1, base_sequence=0), RULES, NOW_MS).header.base_sequence == 0


def test_the_largest_batch_a_topic_takes_is_measured_with_its_header() -> None:
    validate_batch(V1, replace(RULES, max_message_bytes=len(V1)), NOW_MS)
    rejects(MessageTooLarge, V1, replace(RULES, max_message_bytes=len(V1) - 1))


def test_a_batch_too_large_is_told_so_before_its_crc_is_looked_at() -> None:
    rejects(MessageTooLarge, reseal(V1, crc=1), replace(RULES, max_message_bytes=10))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_that_decompresses_past_the_limit_is_too_large(codec: Codec) -> None:
    batch = build_batch([Record(0, 0, b"k", bytes(5000))], codec=codec)
    size = validate_batch(batch, RULES, NOW_MS).decompressed_bytes
    assert size > 5000 > len(batch)
    validate_batch(batch, replace(RULES, max_decompressed_bytes=size), NOW_MS)
    rejects(MessageTooLarge, batch, replace(RULES, max_decompressed_bytes=size - 1))


def test_the_limit_of_decompressed_bytes_holds_for_plain_batches_too() -> None:
    """Who reads the batch later goes by the same limit."""
    size = len(V1) - HEADER_BYTES
    validate_batch(V1, replace(RULES, max_decompressed_bytes=size), NOW_MS)
    rejects(MessageTooLarge, V1, replace(RULES, max_decompressed_bytes=size - 1))


def test_linked_lz4_blocks_are_refused_because_java_cannot_read_them() -> None:
    value = b"".join(b"%d" % number for number in range(40_000))
    plain = build_batch([Record(0, 0, b"k", value)])
    linked = lz4.frame.compress(plain[HEADER_BYTES:], block_linked=True, block_size=lz4.frame.BLOCKSIZE_MAX64KB)
    batch = reseal(plain[:HEADER_BYTES] + linked, attributes=Codec.LZ4)
    assert read_records(batch, 0, read_header(batch), len(plain))[0].value == value
    assert "linked" in str(rejects(InvalidRecord, batch))


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_names_every_record_without_a_key_by_its_index(codec: Codec) -> None:
    """Fact 8; an empty key is a key."""
    keys = [b"k", None, b"", None]
    batch = build_batch([Record(index, 0, key, b"v") for index, key in enumerate(keys)], codec=codec)
    validate_batch(batch, RULES, NOW_MS)
    error = rejects(InvalidRecord, batch, replace(RULES, is_compacted=True))
    assert isinstance(error, InvalidRecord)
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert all("key" in sentence for _, sentence in error.record_errors)


def test_a_batch_of_many_bad_records_names_only_the_first_thousand() -> None:
    batch = build_batch([Record(index, 0, None, b"") for index in range(MAX_RECORD_ERRORS + 5)], codec=Codec.ZSTD)
    error = rejects(InvalidRecord, batch, replace(RULES, is_compacted=True))
    assert isinstance(error, InvalidRecord)
    assert [index for index, _ in error.record_errors] == list(range(MAX_RECORD_ERRORS))


@pytest.mark.parametrize("codec", Codec)
def test_a_count_that_the_records_have_no_room_for_is_refused_before_they_are_visited(codec: Codec) -> None:
    batch = bytearray(build_batch([Record(0, 0, b"k", b"v" * 100)], codec=codec))
    count = RULES.max_decompressed_bytes // 7 + 1
    batch = reseal(batch, record_count=count, last_offset_delta=count - 1)

    def walk(*_args: object, **_rules: object) -> RecordWalk:
        raise AssertionError("visited")

    with pytest.raises(InvalidRecord, match="can hold"):
        validate_batch(batch, RULES, NOW_MS, walk)


TIGHT = replace(RULES, timestamp_before_max_ms=DAY_MS, timestamp_after_max_ms=1000)


@pytest.mark.parametrize("timestamp", [NOW_MS - DAY_MS, NOW_MS, NOW_MS + 1000, -1])
def test_a_timestamp_within_the_topics_range_is_taken_and_so_is_none(timestamp: int) -> None:
    assert validate_batch(build_batch([Record(0, timestamp, b"k", b"v")]), TIGHT, NOW_MS).max_timestamp == timestamp


@pytest.mark.parametrize("timestamp", [NOW_MS - DAY_MS - 1, NOW_MS + 1001, 0, 2**63 - 1])
def test_a_timestamp_out_of_range_is_named_unless_the_topic_stamps_its_own(timestamp: int) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v"), Record(1, timestamp, b"k", b"v")])
    error = rejects(InvalidTimestamp, batch, TIGHT)
    assert isinstance(error, InvalidTimestamp)
    assert [index for index, _ in error.record_errors] == [1]
    validated = validate_batch(batch, replace(TIGHT, is_log_append_time=True), NOW_MS)
    assert validated.max_timestamp == max(NOW_MS, timestamp)


def test_one_bad_timestamp_outweighs_missing_keys() -> None:
    batch = build_batch([Record(0, NOW_MS, None, b"v"), Record(1, 0, b"k", b"v"), Record(2, 0, None, b"v")])
    error = rejects(InvalidTimestamp, batch, replace(TIGHT, is_compacted=True))
    assert isinstance(error, InvalidTimestamp)
    assert [index for index, _ in error.record_errors] == [0, 1, 2]


def test_one_bad_record_is_told_alone() -> None:
    keyless = Record(0, NOW_MS, None, b"v")
    rules = replace(RULES, is_compacted=True)
    alone = rejects(InvalidRecord, build_batch([keyless]), rules)
    assert str(alone).startswith("record 0 was refused: ")
    two = rejects(InvalidRecord, build_batch([keyless, replace(keyless, offset=1)]), rules)
    assert str(two).startswith("2 records were refused; the first is record 0: ")


def test_records_without_a_time_leave_no_max_timestamp() -> None:
    validated = validate_batch(build_batch([Record(0, -1, b"k", b"v")]), TIGHT, NOW_MS)
    assert (validated.max_timestamp, validated.offset_delta_of_max_timestamp) == (-1, -1)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("offsets", [(1, 0), (0, 0), (0, 2)])
def test_offset_deltas_must_count_up_from_zero(codec: Codec, offsets: tuple[int, int]) -> None:
    payload = b"".join(build_batch([Record(offset, 0, b"k", b"v")], base_offset=0)[HEADER_BYTES:] for offset in offsets)
    rejects(InvalidRecord, with_payload(payload, count=2, codec=codec))


@pytest.mark.parametrize(
    "body",
    [
        "12000000026b027600",  # a record longer than the data
        "0e000000026b027600",  # a record shorter than its fields
        "01",  # a negative length
        "10000000086b027600",  # a key that reaches past the record
        "0c000000030100",  # a key length of minus two
        "10000000026b0a7600",  # a value that reaches past the record
        "0e0000000102 6b01",  # a negative header count
        "100000000102 0101 00",  # a header without a key
        "10000000026b02767e",  # headers that are not there
        "10000000026b02760000",  # a byte after the last record
        "2200ffffffffffffffffff01000101000000",  # a timestamp that does not fit
        "",
    ],
)
@pytest.mark.parametrize("codec", Codec)
def test_records_that_lie_about_themselves_are_invalid_under_every_codec(body: str, codec: Codec) -> None:
    validate_batch(with_payload(bytes.fromhex("10000000026b027600"), codec=codec), RULES, NOW_MS)
    rejects(InvalidRecord, with_payload(bytes.fromhex(body), codec=codec))


def test_a_timestamp_beyond_64_bits_is_invalid() -> None:
    batch = build_batch([Record(0, 2**62, b"k", b"v"), Record(1, 2**63 - 1, b"k", b"v")])
    rejects(InvalidRecord, reseal(batch, base_timestamp=2**63 - 1))


@st.composite
def mutated(draw: st.DrawFn) -> tuple[bytes, bytes, int]:
    """A good batch, the same with bytes changed, cut out or put in, and where the change begins."""
    good = bytes(build_batch(draw(records(first_offset=0, most=5)), codec=draw(st.sampled_from(Codec))))
    at = draw(st.integers(0, len(good) - 1))
    match draw(st.sampled_from(["flip", "cut", "insert"])):
        case "flip":
            bad = good[:at] + bytes([good[at] ^ draw(st.integers(1, 255))]) + good[at + 1 :]
        case "cut":
            bad = good[:at] + good[at + draw(st.integers(1, 20)) :]
        case _:
            bad = good[:at] + draw(st.binary(min_size=1, max_size=20)) + good[at:]
    return good, bad, at


@given(mutated())
def test_a_changed_batch_is_refused_unless_the_change_is_in_the_leader_epoch(
    case: tuple[bytes, bytes, int],
) -> None:
    good, bad, _ = case
    try:
        validate_batch(bad, RULES, NOW_MS)
    except KafkaError:
        return
    assert bad[:12] + bad[16:] == good[:12] + good[16:]


@given(mutated())
def test_a_change_under_a_right_crc_is_refused_or_leaves_a_batch_that_every_reader_reads(
    case: tuple[bytes, bytes, int],
) -> None:
    _, bad, at = case
    if at < HEADER_BYTES or len(bad) < HEADER_BYTES:
        return
    batch = reseal(bad)
    try:
        validated = validate_batch(batch, RULES, NOW_MS)
    except (InvalidRecord, MessageTooLarge):
        return
    check_crc(batch, 0, validated.header)
    found = read_records(batch, 0, validated.header, RULES.max_decompressed_bytes)
    assert [record.offset for record in found] == list(range(validated.record_count))
    assert validated.max_timestamp == max(-1, *(record.timestamp for record in found))


@given(records(first_offset=0, most=3), st.integers(0, 400), st.binary(max_size=4), st.integers(0, 4))
def test_the_walk_takes_exactly_the_bytes_that_can_be_read(
    found: list[Record], at: int, noise: bytes, dropped: int
) -> None:
    payload = bytes(build_batch(found)[HEADER_BYTES:])
    payload = payload[:at] + noise + payload[at + dropped :]
    batch = with_payload(payload, count=len(found))
    header = read_header(batch)
    try:
        expected = max(-1, *(record.timestamp for record in read_records(batch, 0, header, len(payload))))
    except CorruptMessage:
        expected = None
    try:
        walk = walk_records(
            payload,
            len(found),
            header.base_timestamp,
            needs_keys=False,
            earliest_ms=-(2**63),
            latest_ms=2**63 - 1,
        )
    except CorruptMessage:
        assert expected is None
    else:
        assert walk.max_timestamp == expected
