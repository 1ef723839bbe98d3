"""A log that follows from arithmetic: what its records are, and which of them compaction must leave.

Each of ``keys`` keys is written ``copies`` times. Offset ``o`` has the place ``o / step`` modulo the number of records;
places are dealt to the keys in turn, so that the copies of a key lie ``step`` apart, around the end of the log. So the
first part of the log is superseded whole, the middle keeps one record in ``copies``, the end keeps all. It is written
straight into segment files, and read by code that shares nothing with the cleaner. Must not know a broker.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from lamina.records.batch import HEADER_BYTES
from lamina.records.record import Record, build_batch

Offsets = npt.NDArray[np.uint64]
Tell = Callable[[int], None]

KEY_PREFIX = b"account-"
KEY_BYTES = len(KEY_PREFIX) + 8
BATCH_BYTES = 16 * 1024
TIMESTAMP_MS = 1_700_000_000_000
SPREAD = 0.4
"""How far apart the copies of a key lie, as a share of the log divided by their number."""
_CHUNK_BYTES = 16 << 20
_CRC_AT, _CRC_FROM = 17, 21
_HEADER = struct.Struct(">qiibIhiqqqhii")


class WrongLog(Exception):
    """What lies on disk is not what arithmetic says; one sentence."""


@dataclass(frozen=True, slots=True)
class KnownLog:
    keys: int
    """Rounded up by :meth:`of`, so that the last batch is a full one."""
    copies: int
    value_bytes: int
    batch_records: int
    step: int

    @staticmethod
    def of(keys: int, copies: int, value_bytes: int) -> KnownLog:
        batch_records = max(BATCH_BYTES // (KEY_BYTES + value_bytes + 8), 1)
        keys = -(-keys // batch_records) * batch_records
        records = keys * copies
        step = int(records / copies * SPREAD) | 1
        while math.gcd(step, records) != 1:
            step += 1
        return KnownLog(keys, copies, value_bytes, batch_records, step)

    @property
    def records(self) -> int:
        return self.keys * self.copies

    @property
    def value(self) -> bytes:
        """What every value has behind the eight bytes of its offset."""
        return bytes(np.random.default_rng(7).integers(0, 256, self.value_bytes - 8, np.uint8))

    def places(self, offsets: Offsets) -> Offsets:
        return offsets * np.uint64(pow(self.step, -1, self.records)) % np.uint64(self.records)

    def keys_at(self, offsets: Offsets) -> Offsets:
        return self.places(offsets) // np.uint64(self.copies)

    def newest(self, offsets: Offsets) -> Offsets:
        """For each offset, the last one of its key."""
        records, step = np.uint64(self.records), np.uint64(self.step)
        turn = self.places(offsets) % np.uint64(self.copies)
        first = (offsets + records * np.uint64(self.copies) - turn * step) % records
        newest = first
        for copy in range(1, self.copies):
            newest = np.maximum(newest, (first + np.uint64(copy) * step) % records)
        return newest


def write_segments(log: KnownLog, directory: Path, segment_bytes: int, tell: Tell) -> int:
    """Fill a partition's directory; returns the bytes. The last segment, the active one, is empty."""
    template = _Template(log)
    at_once = max(_CHUNK_BYTES // len(template.batch), 1)
    each = segment_bytes // len(template.batch)
    batches = log.records // log.batch_records
    for begin in range(0, batches, each):
        with (directory / f"{begin * log.batch_records:020d}.log").open("wb") as file:
            end = min(begin + each, batches)
            for start in range(begin, end, at_once):
                file.write(template.fill(start, min(start + at_once, end)))
                tell(min(at_once, end - start) * len(template.batch))
    (directory / f"{log.records:020d}.log").touch()
    return batches * len(template.batch)


class _Template:
    """One batch as Lamina builds it, in which only offsets, keys and CRC differ from the next."""

    def __init__(self, log: KnownLog) -> None:
        self._log = log
        mark = [struct.pack(">Q", 0xA5A5_0000_0000_0000 + number) for number in range(log.batch_records)]
        records = [
            Record(number, TIMESTAMP_MS, KEY_PREFIX + mark[number], mark[number] + log.value)
            for number in range(log.batch_records)
        ]
        self.batch = bytes(build_batch(records, leader_epoch=0))
        keys = [self.batch.index(KEY_PREFIX + each) + len(KEY_PREFIX) for each in mark]
        values = [self.batch.index(each, at + 8) for each, at in zip(mark, keys, strict=True)]
        self._key_runs, self._value_runs = _runs(keys), _runs(values)

    def fill(self, start: int, end: int) -> memoryview:
        """The batches with these numbers."""
        count, size = end - start, len(self.batch)
        out = np.empty((count, size), np.uint8)
        out[:] = np.frombuffer(self.batch, np.uint8)
        first = np.arange(start, end, dtype=np.uint64) * np.uint64(self._log.batch_records)
        offsets: Offsets = first[:, None] + np.arange(self._log.batch_records, dtype=np.uint64)[None, :]
        keys = self._log.keys_at(offsets)
        for runs, numbers in ((self._key_runs, keys), (self._value_runs, offsets)):
            for at, stride, begin, until in runs:
                shape, strides = (count, until - begin), (size, stride)
                np.ndarray(shape, ">u8", out.data, at, strides)[:] = numbers[:, begin:until]
        np.ndarray(count, ">u8", out.data, 0, (size,))[:] = first
        crcs = [crc32c(row.data[_CRC_FROM:]) for row in out]
        np.ndarray(count, ">u4", out.data, _CRC_AT, (size,))[:] = crcs
        return out.data


def _runs(positions: list[int]) -> list[tuple[int, int, int, int]]:
    """Positions as runs of even steps: where one begins, its step, and the numbers [begin, until) that are in it."""
    found = []
    begin = 0
    while begin < len(positions):
        until = begin + 1
        stride = positions[until] - positions[begin] if until < len(positions) else 1
        while until < len(positions) and positions[until] - positions[until - 1] == stride:
            until += 1
        found.append((positions[begin], stride, begin, until))
        begin = until
    return found


@dataclass(frozen=True, slots=True)
class Survivors:
    """What was found in a cleaned log, all of it checked."""

    records: int
    batches: int
    size_bytes: int
    others: int
    """Records behind the known ones."""
    digest: str
    """Of all bytes below the known log's end, whichever segments they lie in."""


def check_survivors(log: KnownLog, directory: Path, tell: Tell) -> Survivors:
    """Read everything that is left; raises :class:`WrongLog` unless it is, to the byte, what has to be."""
    digest = hashlib.blake2b(digest_size=16)
    value = np.frombuffer(log.value, np.uint8)
    prefix = np.frombuffer(KEY_PREFIX, np.uint8)
    records = batches = size_bytes = others = 0
    last = -1
    for path, position, batch in _batches(directory, tell):
        base, _, _, _, crc, attributes, _, _, _, _, _, _, count = _HEADER.unpack_from(batch)
        where = f"{path.name}, position {position}"
        if crc32c(batch[_CRC_FROM:]) != crc:
            raise WrongLog(f"{where}: the CRC of the batch at offset {base} is wrong")
        if base >= log.records:
            others += count
            continue
        digest.update(batch)
        batches += 1
        size_bytes += len(batch)
        offsets, keys, written = (np.empty(count, np.uint64) for _ in range(3))
        is_sound = attributes == 0 and read_known(
            np.frombuffer(batch, np.uint8), HEADER_BYTES, base, prefix, value, offsets, keys, written
        )
        if not is_sound or not (np.array_equal(keys, log.keys_at(offsets)) and np.array_equal(written, offsets)):
            raise WrongLog(f"{where}: the batch at offset {base} holds records that were never written")
        if not count:
            continue
        if not (int(offsets[0]) > last and bool((np.diff(offsets.astype(np.int64)) > 0).all())):
            raise WrongLog(f"{where}: offsets do not grow")
        if not np.array_equal(log.newest(offsets), offsets):
            raise WrongLog(f"{where}: the batch at offset {base} holds records that are superseded")
        last = int(offsets[-1])
        records += count
    if records != log.keys:
        raise WrongLog(f"{records:,} records are left of {log.keys:,} keys")
    return Survivors(records, batches, size_bytes, others, digest.hexdigest())


def _batches(directory: Path, tell: Tell) -> Iterator[tuple[Path, int, memoryview]]:
    for path in sorted(directory.glob("*.log")):
        if not path.stat().st_size:
            continue
        data = np.memmap(path, np.uint8, "r").data
        position = 0
        while position < len(data):
            size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            yield path, position, data[position : position + size]
            position += size
        tell(len(data))


def _compiled(function: Any) -> Any:
    return numba.njit(cache=True)(function)


@_compiled
def read_known(
    data: npt.NDArray[np.uint8],
    position: int,
    base: int,
    prefix: npt.NDArray[np.uint8],
    value: npt.NDArray[np.uint8],
    offsets: Offsets,
    keys: Offsets,
    written: Offsets,
) -> bool:
    """Whether a batch holds records of a known log's shape and nothing else; notes their numbers."""
    at = position
    for index in range(len(offsets)):
        length = delta = 0
        for field in range(5):  # Length, attributes, timestamp's and offset's difference, length of the key.
            number = shift = 0
            while True:
                byte = data[at]
                at += 1
                number |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            number = (number >> 1) ^ -(number & 1)
            if field == 0:
                length = at + number
            elif field == 3:
                delta = number
            elif field == 4:
                if number != len(prefix) + 8:
                    return False
            elif number != 0:
                return False
        for each in prefix:
            if data[at] != each:
                return False
            at += 1
        key = np.uint64(0)
        for _ in range(8):
            key = (key << np.uint64(8)) | np.uint64(data[at])
            at += 1
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if size >> 1 != len(value) + 8 or size & 1:
            return False
        offset = np.uint64(0)
        for _ in range(8):
            offset = (offset << np.uint64(8)) | np.uint64(data[at])
            at += 1
        for each in value:
            if data[at] != each:
                return False
            at += 1
        if data[at] != 0:  # No headers.
            return False
        at += 1
        if at != length:
            return False
        offsets[index] = base + delta
        keys[index] = key
        written[index] = offset
    return bool(at == len(data))
