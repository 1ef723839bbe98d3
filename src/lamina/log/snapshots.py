"""Producer state on disk: the ``.snapshot`` files of a partition (formats.md §2.4).

A snapshot's name is the offset up to which, exclusively, its state holds. A bad one is no loss: the one before
it, or the log itself, tells the same. Must not know what the state is used for.
"""

from collections import deque
from collections.abc import Iterable
from struct import Struct

from lamina.log.files import Disk, read_file, write_new_file
from lamina.log.producer import REMEMBERED_BATCHES, BatchPlace, Producer
from lamina.records.checksum import crc32c

SNAPSHOT = ".snapshot"
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_PRODUCER = Struct(">qhiqiqiq")
_VERSION = 1


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT}"


def pack_snapshot(producers: Iterable[Producer]) -> bytes:
    entries = [
        _PRODUCER.pack(
            producer.producer_id,
            producer.epoch,
            producer.last_sequence,
            producer.last_data_offset,
            producer.batches[-1].offset_delta if producer.batches else 0,
            producer.last_timestamp,
            producer.coordinator_epoch,
            -1 if producer.current_txn_first_offset is None else producer.current_txn_first_offset,
        )
        for producer in producers
    ]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def unpack_snapshot(data: bytes) -> list[Producer]:
    """The producers in a snapshot; raises ``ValueError`` naming what is wrong with it."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise ValueError(f"a producer snapshot of {len(data)} bytes is cut short")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"a producer snapshot has version {version}, not {_VERSION}")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != crc:
        raise ValueError(f"a producer snapshot has CRC {crc32c(body):#010x}, its header says {crc:#010x}")
    (count,) = _COUNT.unpack_from(body)
    entries = body[_COUNT.size :]
    if count * _PRODUCER.size != len(entries):
        raise ValueError(f"a producer snapshot claims {count} producers in {len(entries)} bytes")
    return [_producer(*fields) for fields in _PRODUCER.iter_unpack(entries)]


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> Producer:
    batches: deque[BatchPlace] = deque(maxlen=REMEMBERED_BATCHES)
    if last_offset >= 0:
        batches.append(BatchPlace(last_sequence, last_offset, offset_delta, timestamp))
    return Producer(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp,
        current_txn_first_offset if current_txn_first_offset >= 0 else None,
        batches,
    )


def write_snapshot(disk: Disk, directory: str, offset: int, producers: Iterable[Producer], *, sync: bool) -> str:
    """Write the state at ``offset``; the flusher syncs it later unless ``sync``."""
    path = snapshot_path(directory, offset)
    write_new_file(disk, path, pack_snapshot(producers), sync=sync)
    return path


def read_snapshot(disk: Disk, directory: str, offset: int) -> list[Producer]:
    return unpack_snapshot(read_file(disk, snapshot_path(directory, offset)))


def snapshot_offsets(disk: Disk, directory: str) -> list[int]:
    """The offsets of all snapshots in a partition's directory, in order."""
    return [
        int(entry.name[:20])
        for entry in disk.scan(directory)
        if entry.name.endswith(SNAPSHOT) and len(entry.name) == 20 + len(SNAPSHOT) and entry.name[:20].isdecimal()
    ]
