"""The compiled walk over records, made ready while the broker serves.

Owns which walk validates batches now, and how many records it may visit on the loop. Every broker begins with the
plain one: numba costs a second and 120 MB to import, so it is not asked for before clients have sent many batches
large enough to gain by it; what piled up while a leader was away does not count as that. The kernel is compiled in a
process of its own, because compiling here would hold up the loop for seconds, and lands in numba's cache on disk,
from which a thread then loads it. Without numba, or where compiling fails, one line says so and the plain walk stays.
Must not know batches.
"""

import asyncio
import gc
import importlib
import importlib.util
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE

from lamina.broker.threads import Threads
from lamina.records.record_walk import Walk, walk_records

logger = logging.getLogger(__name__)

MANY_RECORDS = 32
"""About where the plain walk, at a microsecond a record, costs as much as all else that a Produce request does."""

WORTH_RECORDS = 100_000
"""In batches of many: from then on more are expected. Until then the plain walk has cost a tenth of a second."""

_QUICK_PLAINLY = 2_000
_QUICK_NATIVELY = 50_000
"""How many records take a walk two milliseconds at most: more of them are no work for the loop."""

_KERNEL = "lamina.records.kernel"


class KernelLoading:
    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Threads, kernel: str = _KERNEL) -> None:
        self._loop = loop
        self._threads = threads
        self._kernel = kernel
        self._task: asyncio.Task[None] | None = None
        self.walk_records: Walk = walk_records
        self._quick_records = _QUICK_PLAINLY
        self._walked_records = 0
        """In batches of many."""

    @property
    def is_loaded(self) -> bool:
        return self.walk_records is not walk_records

    def takes_long(self, record_count: int) -> bool:
        """Whether the walk over a batch of so many records would hold up the loop; gets the kernel if that pays."""
        if record_count >= MANY_RECORDS:
            self._walked_records += record_count
            if self._walked_records >= WORTH_RECORDS:
                self.begin()
        return record_count > self._quick_records

    def begin(self) -> asyncio.Task[None]:
        """Load the kernel, unless that has begun. The task is done when the kernel is used, or cannot be loaded."""
        if self._task is None:
            self._task = self._loop.create_task(self._load_kernel())
        return self._task

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _load_kernel(self) -> None:
        if importlib.util.find_spec("numba") is None:
            logger.info('records are checked in plain Python; pip install "lamina[spark]" makes large batches faster')
            return
        try:
            await self._compile()
            self.walk_records = await self._threads.run(self._load)
        except Exception as error:
            logger.warning("records are checked in plain Python, the kernel cannot be loaded: %s", error)
        else:
            self._quick_records = _QUICK_NATIVELY
            logger.info("records are checked by compiled code")

    async def _compile(self) -> None:
        """Import the kernel elsewhere: that compiles it into the cache, or finds it there."""
        # -P: the working directory is no place to import from.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", f"import {self._kernel}", stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
        )
        try:
            _, said = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            lines = said.decode(errors="replace").split("\n")
            raise RuntimeError(next(filter(None, map(str.strip, reversed(lines))), f"exit code {process.returncode}"))

    def _load(self) -> Walk:
        """Import the kernel here, and keep the garbage collector off what comes with it.

        A walk of the collector over numba's objects holds up every thread for 50 ms: not now, and with them set
        aside never. What is set aside is still freed, except for a cycle that lives now and dies later.
        """
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            walk: Walk = importlib.import_module(self._kernel).walk_natively
            gc.freeze()
        finally:
            if was_collecting:
                gc.enable()
        return walk
