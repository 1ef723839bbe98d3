"""Records behind a right CRC: compiled code and plain Python come to the same findings. Needs numba."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

from lamina.errors import CorruptMessage, KafkaError
from lamina.log.verify import records as verify_records
from lamina.log.verify.records import load_screen, record_fault
from lamina.records.batch import BatchHeader, Codec, read_header, walk
from lamina.records.columns.checking import are_as_told
from lamina.records.record import Record, build_batch, read_records
from tests.log.verify.sample import files_of, findings, make_directory
from tests.records.columns.test_arrow import LIES, logs, read, rows
from tests.records.forgery import reseal, with_payload
from tests.records.lying_records import payloads

LIMIT_BYTES = 1 << 20


def plain_verdict(batch: bytes, header: BatchHeader) -> bool:
    try:
        records = read_records(batch, 0, header, LIMIT_BYTES)
    except KafkaError:
        return False
    fits = all(-(2**63) <= record.timestamp < 2**63 for record in records)
    return fits and record_fault(header, records) is None


def native_verdict(batch: bytes, header: BatchHeader) -> bool:
    try:
        return are_as_told(batch, header, LIMIT_BYTES)
    except KafkaError:
        return False


@given(logs())
def test_both_agree_on_what_lies_in_logs(data: bytearray) -> None:
    for position, header in walk(bytes(data)):
        batch = bytes(data[position : position + header.size_bytes])
        assert native_verdict(batch, header) == plain_verdict(batch, header)


@given(payloads, st.sampled_from([Codec.NONE, Codec.GZIP]), st.integers(0, 5), st.sampled_from([-1, 0, 4, 2**63 - 1]))
def test_both_agree_on_records_that_lie(
    payload: tuple[bytes, int], codec: Codec, last_delta: int, max_timestamp: int
) -> None:
    data, count = payload
    batch = bytes(
        reseal(
            with_payload(data, codec=codec),
            record_count=count,
            last_offset_delta=last_delta,
            max_timestamp=max_timestamp,
        )
    )
    assert native_verdict(batch, read_header(batch)) == plain_verdict(batch, read_header(batch))


@given(payloads, st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_readers_of_columns_say_of_a_malformed_record_what_verify_says(
    payload: tuple[bytes, int], codec: Codec
) -> None:
    data, count = payload
    batch = bytes(reseal(with_payload(data, codec=codec), record_count=count, last_offset_delta=2**31 - 1))
    try:
        read_records(batch, 0, read_header(batch), LIMIT_BYTES)
    except CorruptMessage as error:
        with pytest.raises(CorruptMessage) as raised:
            rows(read(batch))
        place, _, said = str(raised.value).partition(": ")
        assert place == "orders-0 is damaged at position 0, offset 0"
        # Of a record that is well-formed and comes before it, the offset may be wrong.
        assert said == str(error) or said.startswith("a record at offset ")


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_has_the_same_sentence_with_compiled_code(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_directory(tmp_path)
    path = files_of(directory, "orders-0/*.log")[-1]
    batch = bytearray(LIES[lie][0])
    end = max(header.next_offset for _, header in walk(path.read_bytes()))
    batch[:8] = end.to_bytes(8)
    with path.open("ab") as file:
        file.write(batch)
    plain = findings(directory)
    assert plain
    monkeypatch.setattr(verify_records, "WORTH_BYTES", 0)
    assert findings(directory) == plain


def test_good_batches_are_not_looked_at_again_once_compiled_code_finds_them_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_directory(tmp_path)
    monkeypatch.setattr(verify_records, "WORTH_BYTES", 0)

    def fail(*_: object) -> None:
        raise AssertionError("looked at in plain Python")

    monkeypatch.setattr("lamina.log.verify.segment.record_fault", fail)
    assert findings(directory) == []


def test_little_is_verified_in_plain_python() -> None:
    assert load_screen(verify_records.WORTH_BYTES - 1) is None
    screen = load_screen(verify_records.WORTH_BYTES)
    assert screen is not None
    batch = build_batch([Record(0, 5, b"k", b"v")])
    assert screen(batch, read_header(batch), LIMIT_BYTES)


def test_without_numba_all_is_verified_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert load_screen(1 << 40) is None
