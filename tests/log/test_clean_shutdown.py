"""The mark of a clean stop: that it is there counts, whatever is in it."""

from pathlib import Path

import pytest

from lamina.log.clean_shutdown import CLEAN_SHUTDOWN, NO_BROKER_EPOCH, read_clean_shutdown, write_clean_shutdown
from lamina.log.files import Disk


def test_the_broker_epoch_comes_back(tmp_path: Path) -> None:
    assert read_clean_shutdown(Disk(), str(tmp_path)) is None
    write_clean_shutdown(Disk(), str(tmp_path), 7)
    assert read_clean_shutdown(Disk(), str(tmp_path)) == 7


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"brokerEpoch":null}',
        b'{"brokerEpoch":1e999}',
        b'{"brokerEpoch":NaN}',
        b'{"brokerEpoch":-2}',
        b'{"brokerEpoch":9223372036854775808}',
        b"[" * 100_000,
    ],
)
def test_a_mark_that_tells_no_epoch_is_a_mark(tmp_path: Path, text: bytes) -> None:
    (tmp_path / CLEAN_SHUTDOWN).write_bytes(text)
    assert read_clean_shutdown(Disk(), str(tmp_path)) == NO_BROKER_EPOCH
