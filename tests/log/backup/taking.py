"""Driving a backup step by step, acting between the steps, and opening what was taken."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from lamina.log.backup.copier import Copier, Step
from lamina.log.backup.partition import Source, TakenLog, take_partition
from lamina.log.files import Disk
from lamina.log.identity import write_topic_id
from lamina.log.partition_log import PartitionLog
from lamina.log.recovery import Opening, open_log
from lamina.settings.log_config import DAY_MS
from tests.log.building import NOW_MS, SMALL, LogBuilder, batches_of, shape_of

T = TypeVar("T")
TOPIC_ID = bytes(range(16))
Act = Callable[[int, Step], None]


def drive(steps: Generator[Step, None, T], act: Act = lambda _number, _step: None) -> T:
    number = 0
    try:
        while True:
            act(number, next(steps))
            number += 1
    except StopIteration as end:
        result: T = end.value
        return result


def only_at(wanted: int, action: Callable[[], None]) -> Act:
    def act(number: int, _step: Step) -> None:
        if number == wanted:
            action()

    return act


def take(
    builder: LogBuilder,
    root: Path,
    act: Act = lambda _number, _step: None,
    *,
    recovery_point: int | None = None,
    is_running: bool = True,
    may_link: bool = True,
    pause: Callable[[], None] = lambda: None,
) -> TakenLog | None:
    """Take the builder's partition to ``root/topic-0``."""
    if not (builder.path / "partition.metadata").exists():
        write_topic_id(builder.disk, str(builder.path), TOPIC_ID)
    source = Source(
        Disk(),
        str(builder.path),
        TOPIC_ID,
        builder.log.recovery_point if recovery_point is None else recovery_point,
        is_still=False,
        is_running=lambda: is_running,
    )
    root.mkdir(exist_ok=True)
    copier = Copier(Disk(), str(root), may_link=may_link)
    return drive(take_partition(source, copier, "topic-0", pause), act)


def open_taken(root: Path, taken: TakenLog, recovery_point: int) -> tuple[list[tuple[int, bytes]], str | None]:
    """Base offset and bytes of every batch in what was taken, and why recovery cut it, if it did."""
    path = f"{root}/topic-0"
    opening = Opening(
        clean=False,
        recovery_point=min(recovery_point, taken.segments[-1].base_offset),
        log_start_offset=0,
        high_watermark=0,
        may_have_gaps=False,
        now_ms=NOW_MS,
        producer_expiration_ms=DAY_MS,
    )
    state, report = open_log(Disk(), path, shape_of(SMALL), opening)
    log = PartitionLog(Disk(), "topic", 0, path, SMALL, shape_of(SMALL), state)
    try:
        assert log.log_end_offset == taken.end_offset
        return [(header.base_offset, data) for header, data in batches_of(log)], report.reason
    finally:
        log.close()
