"""Passes over small logs, for the tests of gathering and installing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lamina.cleaning.contract import Manifest
from lamina.cleaning.gather import PassLimits, PassRange, Taken, prepare, take
from lamina.cleaning.install import installing
from lamina.log.files import Disk
from lamina.log.partition_log import PartitionLog
from tests.cleaning.job import do
from tests.log.building import NOW_MS, LogBuilder, a_log

TOPIC_ID = bytes(range(16))
LIMITS = PassLimits(1 << 20, None)


def a_compacted_log(tmp_path: Path, disk: Disk | None = None, **settings: Any) -> LogBuilder:
    """Segments at 0, 3, 6 and 9, the active one at 12; keys ``a``, ``b`` and ``c`` again and again."""
    builder = a_log(tmp_path, disk, compact=True, delete=False, **settings)
    for number in range(13):
        if number and number % 3 == 0:
            builder.log.roll(builder.now_ms)
        builder.append(b"%c=%d" % (b"abc"[number % 3], number))
    return builder


def begin(log: PartitionLog, plan_id: str = "p1", **extent: Any) -> Taken:
    bounds = {"first_dirty_offset": 0, "first_uncleanable_offset": log.segments.active.base_offset} | extent
    return take(log, TOPIC_ID, PassRange(**bounds), LIMITS, plan_id=plan_id, hash_key=bytes(16), now_ms=NOW_MS)


def planned(log: PartitionLog, plan_id: str = "p1", **job: Any) -> tuple[Taken, Manifest]:
    """A pass up to the point where its result is to be installed."""
    taken = begin(log, plan_id)
    return taken, do(prepare(taken), log.disk, **job)


def install(log: PartitionLog, taken: Taken, manifest: Manifest, topic_id: bytes = TOPIC_ID) -> None:
    for step in steps(log, taken, manifest, topic_id):
        step()


def steps(log: PartitionLog, taken: Taken, manifest: Manifest, topic_id: bytes = TOPIC_ID) -> Iterator[Any]:
    return installing(log, topic_id, taken, manifest, NOW_MS)
