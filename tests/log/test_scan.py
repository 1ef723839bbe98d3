"""Walking a log file with every CRC checked."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.files import Disk
from lamina.log.scan import BadBatch, checked_batches
from lamina.records.batch import HEADER_BYTES
from tests.log.building import a_batch


def scan(path: Path, data: bytes, window_bytes: int = 1 << 20) -> list[tuple[int, int, bytes]]:
    (path / "log").write_bytes(data)
    file = Disk().open(str(path / "log"))
    try:
        return [
            (position, header.base_offset, bytes(batch))
            for position, header, batch in checked_batches(file, 0, len(data), window_bytes)
        ]
    finally:
        file.close()


@given(st.lists(st.integers(0, 700), min_size=1, max_size=12), st.integers(61, 1000))
def test_every_batch_is_given_whatever_the_window(sizes: list[int], window_bytes: int) -> None:
    batches = [bytes(a_batch(b"k=" + b"v" * size, base_offset=number)) for number, size in enumerate(sizes)]
    with TemporaryDirectory() as directory:
        found = scan(Path(directory), b"".join(batches), window_bytes)
    assert [(offset, data) for _, offset, data in found] == [
        (number, batch[: len(data)]) for number, (batch, (_, _, data)) in enumerate(zip(batches, found, strict=True))
    ]
    for batch, (_, _, data) in zip(batches, found, strict=True):
        assert batch.startswith(data)
        assert len(data) == len(batch) or len(data) >= max(window_bytes // 16, HEADER_BYTES)


@given(st.integers(1, 3), st.integers(61, 400), st.data())
def test_the_first_flipped_byte_ends_the_scan_at_its_batch(count: int, window_bytes: int, data: st.DataObject) -> None:
    batches = [bytes(a_batch(b"k=" + b"v" * 50, base_offset=number)) for number in range(count)]
    whole = bytearray(b"".join(batches))
    place = data.draw(st.integers(0, len(whole) - 1))
    number, inside = divmod(place, len(batches[0]))
    # Base offset and leader epoch lie outside the CRC.
    if inside < 8 or 12 <= inside < 16:
        return
    whole[place] ^= data.draw(st.integers(1, 255))
    with TemporaryDirectory() as directory, pytest.raises(BadBatch) as raised:
        scan(Path(directory), bytes(whole), window_bytes)
    assert raised.value.position == number * len(batches[0])


@pytest.mark.parametrize("cut", [1, 12, 60, 61, 100])
@pytest.mark.parametrize("window_bytes", [64, 1000])
def test_a_cut_batch_is_bad_where_it_begins(tmp_path: Path, cut: int, window_bytes: int) -> None:
    batch = bytes(a_batch(b"k=" + b"v" * 50))
    with pytest.raises(BadBatch) as raised:
        scan(tmp_path, batch + batch[:cut], window_bytes)
    assert raised.value.position == len(batch)


def test_a_tail_of_zeros_is_no_batch(tmp_path: Path) -> None:
    batch = bytes(a_batch(b"k=v"))
    with pytest.raises(BadBatch, match="magic 0") as raised:
        scan(tmp_path, batch + bytes(5000))
    assert raised.value.position == len(batch)
