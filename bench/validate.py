"""What it costs to validate a batch before it is appended: ``make bench-validate``.

Batches of 100-byte records, by the plain walk and by the compiled one, beside the CRC alone, which every broker
computes; best of many short rounds measured in turns in this very run, so that the columns can be compared and a busy
machine still finds a quiet moment for each.
"""

import time
from collections.abc import Callable

from crc32c import crc32c
from rich.console import Console
from rich.table import Table

from lamina.records.batch import Codec
from lamina.records.kernel import walk_natively
from lamina.records.record import Record, build_batch
from lamina.records.record_walk import walk_records
from lamina.records.validate import BatchRules, validate_batch

ROUNDS = 60
RECORDS_PER_ROUND = 1000
COUNTS = (1, 2, 4, 10, 100, 1000, 10_000)
NOW_MS = 1_700_000_000_000

RULES = BatchRules(
    max_message_bytes=2**26,
    max_decompressed_bytes=2**26,
    is_compacted=False,
    is_log_append_time=False,
    timestamp_before_max_ms=2**63 - 1,
    timestamp_after_max_ms=3_600_000,
)


def main() -> None:
    table = Table("codec", "records", "plain µs", "compiled µs", "CRC µs", "plain ns/record", "compiled ns/record")
    for codec in Codec:
        for count in COUNTS:
            plain, compiled, crc = measure(batch_of(count, codec), count)
            table.add_row(
                codec.name.lower(),
                f"{count:,}",
                f"{plain:,.1f}",
                f"{compiled:,.1f}",
                f"{crc:,.2f}",
                f"{plain / count * 1000:,.0f}",
                f"{compiled / count * 1000:,.0f}",
            )
    Console(width=120).print(table)


def batch_of(count: int, codec: Codec) -> memoryview:
    """Values that compress about as well as JSON does, timestamps that rise, no keys: a load generator's batch."""
    values = (b'{"id":%012d,"name":"%s","on":true}' % (index * 7919, b"lamina" * 10) for index in range(count))
    records = [Record(index, NOW_MS + index // 50, None, value[:100]) for index, value in enumerate(values)]
    return memoryview(build_batch(records, codec=codec))


def measure(batch: memoryview, count: int) -> tuple[float, float, float]:
    """The least microseconds per batch: plain, compiled, CRC alone."""
    loops: tuple[Callable[[], object], ...] = (
        lambda: validate_batch(batch, RULES, NOW_MS, walk_records),
        lambda: validate_batch(batch, RULES, NOW_MS, walk_natively),
        lambda: crc32c(batch),
    )
    repeats = max(RECORDS_PER_ROUND // count, 1)
    least = [float("inf")] * len(loops)
    for _ in range(ROUNDS):
        for number, work in enumerate(loops):
            started = time.perf_counter()
            for _ in range(repeats):
                work()
            least[number] = min(least[number], (time.perf_counter() - started) / repeats * 1e6)
    return least[0], least[1], least[2]


if __name__ == "__main__":
    main()
