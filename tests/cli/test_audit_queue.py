"""The audit's thread: requests wait for no disk, and what there was no room for is counted."""

import json
import logging
import threading
from collections.abc import Iterator

import pytest

from lamina.cli.serve.audit_queue import AuditQueue

SECONDS = 30


class SlowDisk(logging.Handler):
    """Writes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.threads: set[str] = set()
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.has_begun.set()
        assert self.may_go_on.wait(SECONDS)
        self.threads.add(threading.current_thread().name)
        self.lines.append(record.getMessage())


@pytest.fixture
def disk() -> Iterator[SlowDisk]:
    disk = SlowDisk()
    yield disk
    disk.may_go_on.set()


def logger_of(queue: AuditQueue) -> logging.Logger:
    logger = logging.Logger("audit")
    logger.addHandler(queue)
    return logger


def test_lines_are_written_in_order_by_a_thread_of_their_own(disk: SlowDisk) -> None:
    queue = AuditQueue(disk)
    logger = logger_of(queue)
    for number in range(100):
        logger.info("%d", number)
    assert disk.lines == [], "nobody has waited for the disk"
    disk.may_go_on.set()
    queue.close()
    assert disk.lines == [str(number) for number in range(100)]
    assert disk.threads == {"lamina-audit"}


def test_what_there_is_no_room_for_is_one_line_with_the_count(disk: SlowDisk) -> None:
    queue = AuditQueue(disk, most_waiting=4)
    logger = logger_of(queue)
    logger.info("being written")
    assert disk.has_begun.wait(SECONDS)
    for number in range(9):
        logger.info("%d", number)
    disk.may_go_on.set()
    queue.close()
    told = [json.loads(line) for line in disk.lines if "dropped" in line]
    assert told == [{"event": "dropped", "count": 5}]
    assert [line for line in disk.lines if "dropped" not in line] == ["being written", "0", "1", "2", "3"]
