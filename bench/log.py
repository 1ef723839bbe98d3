"""How fast the log is, beside the bare system calls that do the same bytes: ``make bench-log``.

Every figure is a ratio of two loops measured in turns in this very run, best of five each; absolute times say
nothing from one machine to the next. The bars are the project's own.
"""

import gc
import os
import resource
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from crc32c import crc32c
from rich.console import Console
from rich.table import Table

from lamina.log.directory import LogDirectory
from lamina.log.flushing import flush
from lamina.log.partition_log import PartitionLog
from lamina.log.scan import checked_batches
from lamina.records.batch import check_crc, read_header
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig

ROUNDS = 5
MEBIBYTE = 1024 * 1024
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Result:
    name: str
    ours: str
    bare: str
    ratio: float
    bar: str
    met: bool


def main() -> None:
    root = tempfile.mkdtemp(prefix="lamina-bench-")
    try:
        results = [
            large_batches(f"{root}/large"),
            small_batches(f"{root}/small"),
            *reading(f"{root}/read"),
            *opening(f"{root}/open"),
        ]
    finally:
        shutil.rmtree(root)
    table = Table("what", "Lamina", "bare loop", "ratio", "bar", "")
    for result in results:
        ratio = f"{result.ratio:.2f}" if result.ratio else ""
        table.add_row(result.name, result.ours, result.bare, ratio, result.bar, "✓" if result.met else "✗ missed")
    Console(width=120).print(table)


def best_of(first: Callable[[], float], second: Callable[[], float]) -> tuple[float, float]:
    """The least seconds of two loops, measured in turns."""
    firsts, seconds = [], []
    for _ in range(ROUNDS):
        gc.collect()
        firsts.append(first())
        gc.collect()
        seconds.append(second())
    return min(firsts), min(seconds)


def new_log(path: str, config: LogConfig) -> tuple[LogDirectory, PartitionLog]:
    shutil.rmtree(path, ignore_errors=True)
    directory = LogDirectory.open(path, node_id=1)
    return directory, directory.create_partition("bench", 0, bytes(15) + b"1", config, NOW_MS)


def idempotent_batch(value_bytes: int, sequence: int) -> bytearray:
    """One record, idempotent: producer state is part of what is measured."""
    record = Record(0, NOW_MS, b"key", b"v" * value_bytes)
    return build_batch([record], producer_id=1, producer_epoch=0, base_sequence=sequence)


def append_all(path: str, batches: list[bytearray]) -> float:
    """Header, CRC, producer state, offsets, stamping, write, indexes: what a produce request costs the log."""
    directory, log = new_log(path, LogConfig())
    started = time.perf_counter()
    for batch in batches:
        header = read_header(batch)
        check_crc(batch, 0, header)
        log.append(batch, header, 1, NOW_MS)
    seconds = time.perf_counter() - started
    log.close()
    directory.release()
    return seconds


def large_batches(path: str) -> Result:
    batches = [idempotent_batch(64 * 1024 - 90, sequence) for sequence in range(4096)]

    def bare() -> float:
        fd = os.open(f"{path}.bare", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        started = time.perf_counter()
        for batch in batches:
            os.write(fd, batch)
        seconds = time.perf_counter() - started
        os.close(fd)
        os.unlink(f"{path}.bare")
        return seconds

    ours, least = best_of(lambda: append_all(path, batches), bare)
    megabytes = sum(map(len, batches)) / 1e6
    return rate("append, 64 KiB batches / os.write", megabytes, "MB/s", ours, least, 0.6)


def small_batches(path: str) -> Result:
    batches = [idempotent_batch(97, sequence) for sequence in range(100_000)]
    header = struct.Struct(">qiibIhiqqqhii")
    place = struct.Struct(">qii")

    def bare() -> float:
        fd = os.open(f"{path}.bare", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        started = time.perf_counter()
        for offset, batch in enumerate(batches):
            fields = header.unpack_from(batch)
            if crc32c(memoryview(batch)[21:]) != fields[4]:
                raise ValueError("bad CRC")
            place.pack_into(batch, 0, offset, fields[1], 1)
            os.write(fd, batch)
        seconds = time.perf_counter() - started
        os.close(fd)
        os.unlink(f"{path}.bare")
        return seconds

    ours, least = best_of(lambda: append_all(path, batches), bare)
    name = f"append, {len(batches[0])}-byte batches / unpack + CRC + pack + write"
    return rate(name, len(batches) / 1000, "k/s", ours, least, 0.4)


def reading(path: str) -> list[Result]:
    """1 GiB in closed and active segments, in the page cache."""
    directory, log = new_log(path, LogConfig(segment_bytes=256 * MEBIBYTE))
    batch = idempotent_batch(64 * 1024 - 90, 0)
    plain = build_batch([Record(0, NOW_MS, b"key", b"v" * (64 * 1024 - 90))])
    for _ in range(1024 * MEBIBYTE // len(batch)):
        log.append(plain, read_header(plain), 1, NOW_MS)
    flush(log)
    total = log.size_bytes()
    paths = [segment.path() for segment in log.segments]
    data = memoryview(bytearray(total))

    def read_log() -> float:
        offset, end, fraction = 0, log.log_end_offset, MEBIBYTE // len(plain) + 1
        started = time.perf_counter()
        while offset < end:
            lease = log.read(offset, MEBIBYTE)
            assert lease is not None
            lease.read()
            lease.give_back()
            offset += fraction
        return time.perf_counter() - started

    def pread() -> float:
        started = time.perf_counter()
        for name in paths:
            fd = os.open(name, os.O_RDONLY)
            position = 0
            while chunk := os.pread(fd, MEBIBYTE, position):
                position += len(chunk)
            os.close(fd)
        return time.perf_counter() - started

    def verify() -> float:
        started = time.perf_counter()
        for segment in log.segments:
            with segment.lease(0, segment.size_bytes) as lease:
                for _ in checked_batches(lease.file, 0, segment.size_bytes):
                    pass
        return time.perf_counter() - started

    def crc() -> float:
        started = time.perf_counter()
        for position in range(0, total, 64 * 1024):
            crc32c(data[position : position + 64 * 1024])
        return time.perf_counter() - started

    read_ours, read_bare = best_of(read_log, pread)
    verify_ours, verify_bare = best_of(verify, crc)
    log.close()
    directory.release()
    return [
        rate("read 1 GiB in 1 MiB ranges / os.pread", total / 1e6, "MB/s", read_ours, read_bare, 0.8),
        rate("verify 1 GiB / the CRC library alone", total / 1e6, "MB/s", verify_ours, verify_bare, 0.5),
    ]


def opening(path: str) -> list[Result]:
    """1,000 partitions with a few batches each, closed cleanly."""
    partitions = 1000
    directory = LogDirectory.open(path, node_id=1)
    for partition in range(partitions):
        log = directory.create_partition("bench", partition, bytes(15) + b"1", LogConfig(), NOW_MS)
        for sequence in range(5):
            batch = idempotent_batch(1000, sequence)
            log.append(batch, read_header(batch), 1, NOW_MS)
    directory.close()
    seconds, kilobytes, descriptors = [], [], []
    for _ in range(ROUNDS):
        directory = LogDirectory.open(path, node_id=1)
        gc.collect()
        before_bytes, before_files = resident_bytes(), open_files()
        started = time.perf_counter()
        logs = directory.open_partitions(lambda _: LogConfig(), NOW_MS)
        seconds.append(time.perf_counter() - started)
        gc.collect()
        kilobytes.append((resident_bytes() - before_bytes) / 1000 / len(logs))
        descriptors.append((open_files() - before_files) / len(logs))
        directory.close()
    each_ms, each_kb, each_files = min(seconds) * 1000 / partitions, max(kilobytes), max(descriptors)
    return [
        Result("open a cleanly closed partition", f"{each_ms:.2f} ms", "", 0, "≤ 0.5 ms", each_ms <= 0.5),
        Result("memory of an open partition", f"{each_kb:.1f} KB", "", 0, "≤ 30 KB", each_kb <= 30),
        Result("descriptors of an open partition", f"{each_files:.1f}", "", 0, "≤ 3", each_files <= 3),
    ]


def rate(name: str, amount: float, unit: str, ours: float, bare: float, bar: float) -> Result:
    ratio = bare / ours
    return Result(name, f"{amount / ours:,.0f} {unit}", f"{amount / bare:,.0f} {unit}", ratio, f"≥ {bar}", ratio >= bar)


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main()
