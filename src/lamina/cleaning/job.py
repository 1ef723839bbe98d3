"""One plan, carried out in this process: whatever goes wrong is an answer too.

``clean_log`` is loaded by name, because only the process of a job has to have numba and numpy. Must not know who asks.
"""

import importlib
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.engine_messages import Answer, failure_of
from lamina.cleaning.failures import Cancelled, EngineMissing
from lamina.clocks import SYSTEM_CLOCKS, Clocks

_CLEAN_LOG = "lamina.cleaning.clean_log"
_PROGRESS_SECONDS = 0.2
_TIMES_OVER_THE_LOG = 3
"""How often the sources' bytes are read or written, about: read for their keys, read again, written."""


def run_plan(plan: Plan, attempt: str, **options: Any) -> Manifest:
    """As :func:`lamina.cleaning.clean_log.clean_log`; raises :class:`EngineMissing` with what to install."""
    try:
        clean_log = importlib.import_module(_CLEAN_LOG).clean_log
    except ModuleNotFoundError as error:
        raise EngineMissing(
            f'logs cannot be compacted here, {error.name} is missing: pip install "lamina[spark]" brings it'
        ) from None
    manifest: Manifest = clean_log(plan, attempt, **options)
    return manifest


def carry_out(
    plan: Plan,
    progress: Callable[[int], None],
    is_cancelled: Callable[[], bool],
    clocks: Clocks = SYSTEM_CLOCKS,
) -> Answer:
    """The answer to a plan; ``progress`` is told now and then how many of the sources' bytes are done."""
    try:
        meter = _Meter(plan, progress, is_cancelled, clocks)
        threads = os.cpu_count() or 1
        return run_plan(replace(plan, job_syncs=False), "1", threads=threads, meter=meter, clocks=clocks)
    except Exception as error:
        return failure_of(plan, error)


class _Meter:
    def __init__(
        self, plan: Plan, progress: Callable[[int], None], is_cancelled: Callable[[], bool], clocks: Clocks
    ) -> None:
        self._clocks = clocks
        self._progress = progress
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
            now = self._clocks.monotonic_seconds()
            if now - self._told_at >= _PROGRESS_SECONDS:
                self._told_at = now
                self._progress(min(self._bytes // _TIMES_OVER_THE_LOG, self._source_bytes))
