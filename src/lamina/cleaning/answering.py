"""One plan, done in this process: whatever goes wrong is an answer too. Must not know who asks."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from lamina.cleaning.answers import Answer, failure_of
from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import Cancelled
from lamina.cleaning.job import run_plan

_TOLD_SECONDS = 0.2
_TIMES_OVER_THE_LOG = 3
"""How often the sources' bytes go by, about: read for their keys, read again, written."""


def do(plan: Plan, told: Callable[[int], None], is_cancelled: Callable[[], bool]) -> Answer:
    """The answer to a plan; ``told`` hears now and then how many of the sources' bytes are done."""
    try:
        return run_plan(
            replace(plan, job_syncs=False), "1", threads=os.cpu_count() or 1, meter=_Meter(plan, told, is_cancelled)
        )
    except Exception as error:
        return failure_of(plan, error)


class _Meter:
    def __init__(self, plan: Plan, told: Callable[[int], None], is_cancelled: Callable[[], bool]) -> None:
        self._told = told
        self._is_cancelled = is_cancelled
        self._lock = threading.Lock()
        self._source_bytes = plan.source_bytes
        self._bytes = 0
        self._told_at = 0.0

    def __call__(self, size_bytes: int) -> None:
        if self._is_cancelled():
            raise Cancelled("the pass was cancelled")
        with self._lock:
            self._bytes += size_bytes
            now = time.monotonic()
            if now - self._told_at >= _TOLD_SECONDS:
                self._told_at = now
                self._told(min(self._bytes // _TIMES_OVER_THE_LOG, self._source_bytes))
