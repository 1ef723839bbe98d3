"""``python -m lamina.cleaning``: does plans that come in on stdin, and tells on stdout what became of each.

One plan a line, then an empty line; answers as ``answers.py`` has them. Ends when stdin does, whatever it is doing:
then nobody waits for the result any more. Must not know who asks.
"""

import os
import sys
import threading
import time
from typing import BinaryIO

from lamina.cleaning.answers import Answer, Failure, Progress, dump_line
from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import ContractError, Plan, load
from lamina.cleaning.failures import CleaningFailed, CorruptLog

_PROGRESS_SECONDS = 0.2
_PASSES_OVER_THE_LOG = 3
"""How often the sources' bytes go by, about: read for their keys, read again, written."""


class ProgressMeter:
    """Counts the bytes of one pass and says now and then how far it is."""

    def __init__(self, plan: Plan, out: BinaryIO) -> None:
        self._plan_id = plan.plan_id
        self._out = out
        self._lock = threading.Lock()
        self._source_bytes = sum(segment.size_bytes for segment in plan.segments)
        self._bytes = 0
        self._said_at = 0.0

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._bytes += size_bytes
            now = time.monotonic()
            if now - self._said_at >= _PROGRESS_SECONDS:
                self._said_at = now
                done_bytes = min(self._bytes // _PASSES_OVER_THE_LOG, self._source_bytes)
                say(self._out, Progress(self._plan_id, done_bytes, self._source_bytes))


def do(plan: Plan, out: BinaryIO) -> Answer:
    """The answer to one plan: what goes wrong is one too."""
    try:
        return clean_log(plan, "1", threads=os.cpu_count() or 1, meter=ProgressMeter(plan, out))
    except CorruptLog as error:
        return Failure(plan.plan_id, str(error), is_uncleanable=True)
    except (CleaningFailed, OSError, MemoryError) as error:
        return Failure(plan.plan_id, str(error) or type(error).__name__)


def say(out: BinaryIO, said: Progress | Answer) -> None:
    out.write(dump_line(said))
    out.flush()


def run(given: BinaryIO, out: BinaryIO) -> int:
    plans: list[Plan] = []
    for line in given:
        if not line.strip():
            break
        try:
            plans.append(load(Plan, line))
        except ContractError as error:
            print(error, file=sys.stderr)
            return 2
    threading.Thread(target=_end_with, args=(given,), daemon=True).start()
    for plan in plans:
        say(out, do(plan, out))
    return 0


def _end_with(given: BinaryIO) -> None:
    given.read()
    os._exit(3)


if __name__ == "__main__":
    sys.exit(run(sys.stdin.buffer, sys.stdout.buffer))
