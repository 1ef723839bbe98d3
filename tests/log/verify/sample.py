"""A small log directory with everything in it: segments, epochs, idempotent and transactional producers."""

from collections.abc import Callable
from pathlib import Path

from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from lamina.log.partition_log import PartitionLog
from lamina.log.verify.directory import Verification, prepare, verify
from lamina.log.verify.findings import Finding
from lamina.records.batch import Codec, read_header
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=900, segment_index_bytes=240, index_interval_bytes=100)
TOPIC_ID = bytes(range(16))


def make_directory(path: Path, *, cleanly: bool = True) -> Path:
    """A log directory with ``orders-0`` and an empty ``orders-1``; stopped cleanly, or as a crash leaves it."""
    directory = LogDirectory.open(str(path), node_id=1, cluster_id="sample")
    log = directory.create_partition("orders", 0, TOPIC_ID, CONFIG, NOW_MS)
    directory.create_partition("orders", 1, TOPIC_ID, CONFIG, NOW_MS)
    for round_number in range(3):
        fill(log, round_number)
        if round_number == 1:
            directory.write_recovery_points()
    directory.write_high_watermarks({("orders", 0): log.log_end_offset, ("orders", 1): 0})
    if cleanly:
        directory.close()
    else:
        for each in directory.logs.values():
            each.close()
        directory.release()
    return path


def fill(log: PartitionLog, round_number: int) -> None:
    """One round, a segment's worth: a plain and an idempotent batch, an aborted and a committed transaction.

    The compressed batch comes last: its size is up to the library, and no position depends on it.
    """
    epoch = round_number // 2
    append(log, build_batch(records(log, 3)), epoch)
    sequence = round_number * 2
    append(log, build_batch(records(log, 2), producer_id=7, producer_epoch=0, base_sequence=sequence), epoch)
    for producer_id, end in ((8, ControlType.ABORT), (9, ControlType.COMMIT)):
        batch = build_batch(
            records(log, 2),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        append(log, batch, epoch)
        marker = build_marker(
            end,
            offset=0,
            timestamp_ms=NOW_MS + log.log_end_offset,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=round_number,
        )
        append(log, marker, epoch)
    append(log, build_batch(records(log, 3), codec=Codec.ZSTD), epoch)


def records(log: PartitionLog, count: int) -> list[Record]:
    end = log.log_end_offset
    return [
        Record(offset, NOW_MS + offset, f"key-{offset}".encode(), b"value" * 3, ((b"trace", None),))
        for offset in range(end, end + count)
    ]


def append(log: PartitionLog, batch: bytearray, epoch: int) -> None:
    log.append(batch, read_header(batch), epoch, NOW_MS)


def verified(path: Path, is_running: Callable[[str], bool] = lambda _path: False) -> Verification:
    disk = Disk()
    verification = prepare(disk, str(path), is_running)
    verify(disk, verification, lambda _size_bytes: None)
    return verification


def findings(path: Path) -> list[Finding]:
    return verified(path).findings.kept


def files_of(path: Path, pattern: str) -> list[Path]:
    found = sorted(path.glob(pattern))
    assert found, f"nothing is called {pattern}"
    return found


def flip(path: Path, position: int, mask: int = 0xFF) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= mask
    path.write_bytes(data)
