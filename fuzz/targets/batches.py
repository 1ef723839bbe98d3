"""Record batches: walked, read, checked as a client's and made ready for a topic in any codec."""

from contextlib import suppress

from fuzz.choices import Choices
from fuzz.sealing import seal_one_batch
from lamina.errors import CorruptMessage, KafkaError, MessageTooLarge, UnsupportedCompression
from lamina.records.batch import HEADER_BYTES, BatchHeader, Codec, check_crc, read_header, walk
from lamina.records.marker import read_marker
from lamina.records.prepare import PreparedBatch, prepare_batch
from lamina.records.record import Record, build_batch, read_records
from lamina.records.record_walk import Walk, walk_records
from lamina.records.validate import BatchRules

try:
    from lamina.records.kernel import walk_natively as _fast_walk
except ImportError:
    _fast_walk = walk_records

_LIMIT_BYTES = 1 << 20
_NOW_MS = 1_700_000_000_000
_DAY_MS = 86_400_000
_UNREADABLE = (CorruptMessage, MessageTooLarge, UnsupportedCompression)


def one(data: bytes) -> None:
    choices = Choices(data)
    is_sealed = choices.flag()
    rules = BatchRules(
        max_message_bytes=_LIMIT_BYTES,
        max_decompressed_bytes=_LIMIT_BYTES,
        is_compacted=choices.flag(),
        is_log_append_time=choices.flag(),
        timestamp_before_max_ms=choices.one_of((2**63 - 1, _DAY_MS)),
        timestamp_after_max_ms=choices.one_of((2**63 - 1, _DAY_MS)),
        codec=choices.one_of((None, *Codec)),
    )
    sent = choices.rest()
    if is_sealed:
        sent = seal_one_batch(sent)
    _walk(sent)
    if len(sent) >= HEADER_BYTES and read_header(sent).size_bytes == len(sent):
        _read(sent, read_header(sent))
    _prepare(sent, rules)


def _walk(sent: bytes) -> None:
    end = 0
    try:
        for position, header in walk(sent):
            assert position == end
            end = position + header.size_bytes
            assert HEADER_BYTES <= header.size_bytes <= len(sent) - position
    except CorruptMessage:
        return
    assert len(sent) - end < HEADER_BYTES or end + read_header(sent, end).size_bytes > len(sent)


def _read(sent: bytes, header: BatchHeader) -> None:
    with suppress(*_UNREADABLE):
        read_marker(sent, 0, header)
    try:
        records = read_records(sent, 0, header, _LIMIT_BYTES)
    except _UNREADABLE:
        return
    assert len(records) == header.record_count
    if records and not header.is_log_append_time:
        assert _again(records, header) == records


def _again(records: list[Record], header: BatchHeader) -> list[Record]:
    """The same records, through a batch that was built from them."""
    offsets = [record.offset for record in records]
    # What a lying header says of times may be more than a header can hold.
    if not all(-(2**63) <= record.timestamp < 2**63 for record in records):
        return records
    if not 0 <= max(offsets) - min(offsets) < 2**31 or not 0 <= min(offsets) < 2**63:
        return records
    base = records[0].timestamp
    if not all(-(2**63) <= record.timestamp - base < 2**63 for record in records):
        return records
    built = build_batch(records, base_offset=min(offsets), last_offset=max(offsets))
    return read_records(built, 0, read_header(built), 2 * _LIMIT_BYTES)


def _prepare(sent: bytes, rules: BatchRules) -> None:
    plain = _outcome(sent, rules, walk_records)
    fast = _outcome(sent, rules, _fast_walk)
    assert fast == plain
    if isinstance(plain, tuple):
        return
    batch, validated = plain
    header = read_header(batch)
    assert validated.header == header
    check_crc(batch, 0, header)
    assert rules.codec is None or header.codec_id == rules.codec
    records = read_records(batch, 0, header, _LIMIT_BYTES)
    assert records == read_records(sent, 0, read_header(sent), _LIMIT_BYTES)
    assert [record.offset for record in records] == list(range(header.record_count))
    assert max(-1, *(record.timestamp for record in records)) == validated.max_timestamp
    assert prepare_batch(bytearray(batch), rules, _NOW_MS).validated == validated


def _outcome(sent: bytes, rules: BatchRules, walk: Walk) -> PreparedBatch | tuple[str, str]:
    try:
        return prepare_batch(bytearray(sent), rules, _NOW_MS, walk)
    except KafkaError as error:
        return type(error).__name__, str(error)
