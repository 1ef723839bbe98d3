"""What real clients send (captured/README.md) is taken and read."""

from pathlib import Path

import pytest

from lamina.errors import InvalidRecord
from lamina.records.batch import Codec
from lamina.records.record import Header, Record, build_batch, read_records
from lamina.records.validate import BatchRules, validate_batch

CAPTURED = sorted((Path(__file__).parent / "captured").glob("*.bin"))
T = 1_700_000_000_000
RULES = BatchRules(
    max_message_bytes=1_048_588,
    max_decompressed_bytes=1_048_588,
    is_compacted=False,
    is_log_append_time=False,
    timestamp_before_max_ms=1000,
    timestamp_after_max_ms=1000,
)


def sent_records(name: str) -> list[Record]:
    headers: tuple[Header, ...] = ((b"h", b"x"), (b"none", None), (b"empty", b""), ("ключ".encode(), b"\xff"))
    if name.startswith("kafka-python"):
        headers = tuple(header for header in headers if header[1] is not None)
    return [
        Record(0, T + 5, b"k", b"v", headers),
        Record(1, T, None, b"keyless"),
        Record(2, T + 9, b"tombstone", None),
        Record(3, T + 2, b"", b""),
        Record(4, T + 1, b"big", b"lamina " * (100 if name.endswith("none") else 10_000)),
    ]


def sent_codec(name: str) -> Codec:
    return Codec.ZSTD if name.endswith("idempotent") else Codec[name.rpartition("-")[2].upper()]


def test_every_client_was_captured_with_every_codec() -> None:
    assert len(CAPTURED) == 4 * len(Codec) + 1


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: path.stem)
def test_what_a_client_sent_is_taken_and_read(path: Path) -> None:
    batch = path.read_bytes()
    validated = validate_batch(batch, RULES, T)
    assert validated.header.codec_id == sent_codec(path.stem)
    assert validated.max_timestamp == validated.header.max_timestamp == T + 9
    assert validated.offset_delta_of_max_timestamp == 2
    is_idempotent = path.stem.startswith(("java", "kafka-python")) or path.stem.endswith("idempotent")
    assert validated.header.producer_id == (1000 if is_idempotent else -1)
    assert read_records(batch, 0, validated.header, validated.decompressed_bytes) == sent_records(path.stem)


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: path.stem)
def test_a_compacted_topic_refuses_the_one_record_without_a_key(path: Path) -> None:
    compacted = BatchRules(1_048_588, 1_048_588, True, False, 1000, 1000)
    with pytest.raises(InvalidRecord) as caught:
        validate_batch(path.read_bytes(), compacted, T)
    assert [index for index, _ in caught.value.record_errors] == [1]


def test_a_plain_batch_is_built_bit_for_bit_as_java_builds_it() -> None:
    sent = (Path(__file__).parent / "captured" / "java-none.bin").read_bytes()
    assert build_batch(sent_records("java-none"), producer_id=1000, producer_epoch=0, base_sequence=0) == sent
