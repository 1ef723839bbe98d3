import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import CorruptMessage
from lamina.records.batch import Codec, read_header
from lamina.records.marker import ControlType, Marker, build_marker, read_marker
from lamina.records.record import Record, build_batch, build_empty_batch
from tests.records.forgery import reseal
from tests.records.vectors import V2


def read(batch: bytes | bytearray) -> Marker | None:
    return read_marker(batch, 0, read_header(batch))


def control_batch(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([Record(0, 0, key, value)], is_control=True)


def test_a_commit_marker_is_built_bit_for_bit_and_read() -> None:
    marker = build_marker(
        ControlType.COMMIT,
        offset=5,
        timestamp_ms=1000,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        leader_epoch=0,
    )
    assert marker == V2
    assert read(V2) == Marker(ControlType.COMMIT, 0)


@given(st.sampled_from([ControlType.ABORT, ControlType.COMMIT]), st.integers(0, 2**31 - 1))
def test_a_marker_is_78_bytes_and_comes_back(control_type: ControlType, epoch: int) -> None:
    marker = build_marker(
        control_type, offset=9, timestamp_ms=1, producer_id=2**40, producer_epoch=3, coordinator_epoch=epoch
    )
    assert len(marker) == 78
    assert read(marker) == Marker(control_type, epoch)


def test_only_the_end_of_a_transaction_is_built_as_a_marker() -> None:
    with pytest.raises(ValueError, match="LEADER_CHANGE"):
        build_marker(
            ControlType.LEADER_CHANGE,
            offset=0,
            timestamp_ms=0,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
        )


def test_other_control_records_are_named_and_unknown_ones_are_tolerated() -> None:
    assert read(control_batch(b"\0\0\0\2", b"whatever")) == Marker(ControlType.LEADER_CHANGE, None)
    assert read(control_batch(b"\0\0\0\x63", None)) == Marker(ControlType.UNKNOWN, None)


def test_a_control_batch_whose_record_was_cleaned_away_says_nothing() -> None:
    """Fact 54."""
    assert read(build_empty_batch(read_header(V2))) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"\0" * 6), (b"\0\0\0", b"\0" * 6), (b"\0\0\0\1", None), (b"\0\0\0\0", b"\0" * 5)],
)
def test_a_control_record_that_is_too_short_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptMessage):
        read(control_batch(key, value))


def test_a_control_batch_in_a_codec_that_nobody_has_or_that_is_huge_is_corrupt() -> None:
    key = b"\0\0\0\1"
    for batch in (
        reseal(control_batch(key, bytes(6)), attributes=0x27),
        build_batch([Record(0, 0, key, bytes(2_000_000))], is_control=True, codec=Codec.ZSTD),
    ):
        with pytest.raises(CorruptMessage, match="the marker at offset 0 cannot be read"):
            read(batch)
