"""The audit on a thread of its own: clients make lines of it, and a slow disk or terminal is to hold up no request.

Owns how many lines wait, and the line that tells how many there was no room for. Must not know what lines say.
"""

import json
import logging
from queue import SimpleQueue
from threading import Thread

MOST_WAITING = 10_000
"""Some ten megabytes."""
_LONGEST_AT_THE_END_SECONDS = 5.0


class Dropped(dict[str, object]):
    """What is told instead of lines that were dropped."""

    def __init__(self, count: int) -> None:
        super().__init__(event="dropped", count=count)

    def __str__(self) -> str:
        return json.dumps(self)


class AuditQueue(logging.Handler):
    def __init__(self, target: logging.Handler, most_waiting: int = MOST_WAITING) -> None:
        super().__init__()
        self._target = target
        self._most_waiting = most_waiting
        self._waiting: SimpleQueue[logging.LogRecord | None] = SimpleQueue()
        self._dropped = 0
        """Since that was told."""
        self._thread = Thread(target=self._write, name="lamina-audit", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Once the queue is full, nothing is taken until half of it is written: a gap is one line, not many."""
        waiting = self._waiting.qsize()
        if waiting >= self._most_waiting or (self._dropped and waiting > self._most_waiting // 2):
            self._dropped += 1
        else:
            self._waiting.put(record)

    def close(self) -> None:
        """Write what waits, unless that takes too long: a program that ends calls this."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join(_LONGEST_AT_THE_END_SECONDS)
        super().close()

    def _write(self) -> None:
        while (record := self._waiting.get()) is not None:
            self._target.handle(record)
            if self._waiting.qsize() <= self._most_waiting // 2:
                self._tell_dropped(record.name)

    def _tell_dropped(self, name: str) -> None:
        self.acquire()
        count, self._dropped = self._dropped, 0
        self.release()
        if count:
            told = Dropped(count)
            facts = {"msg": told, "told": told, "name": name, "levelno": logging.WARNING, "levelname": "WARNING"}
            self._target.handle(logging.makeLogRecord(facts))
