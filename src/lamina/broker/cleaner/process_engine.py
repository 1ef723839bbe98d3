"""An engine without Spark: a child process that does one plan after another, ``python -m lamina.cleaning``.

Owns when there is a child: from the first plan until none is open. Must not know what a pass is.
"""

import asyncio
import importlib.util

from lamina.broker.cleaner.engine_child import STOPPED, EngineChild, Progress, spawn
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.cleaning.kernel_cache import WAITS_FOR_KERNELS

_NEEDED = ("numba", "numpy")


class ProcessEngine:
    def __init__(self, module: str = "lamina.cleaning") -> None:
        self._module = module
        self._child: EngineChild | None = None
        self._changing = asyncio.Lock()
        """Held while a child starts or ends."""
        self._working = 0
        self._is_stopped = False

    def missing(self) -> str | None:
        lacking = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if not lacking:
            return None
        return f'{" and ".join(lacking)} not installed: pip install "lamina[spark]"'

    @property
    def is_running(self) -> bool:
        return self._child is not None and not self._child.is_over

    def waits_for(self) -> str | None:
        return WAITS_FOR_KERNELS if self._child is not None and self._child.is_compiling else None

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        self._working += 1
        try:
            child = await self._ready_child()
            return Failure(plan.plan_id, STOPPED) if child is None else await child.clean(plan, progress)
        except OSError as error:
            return Failure(plan.plan_id, f"the engine could not be started: {error}")
        finally:
            self._working -= 1
            await self._stop_idle_engine()

    def cancel(self, plan_id: str) -> None:
        if self._child is not None:
            self._child.cancel(plan_id)

    async def stop(self) -> None:
        self._is_stopped = True
        await self._stop_idle_engine()

    async def _ready_child(self) -> EngineChild | None:
        """``None`` for a stopped engine."""
        async with self._changing:
            if not self._is_stopped and not self.is_running:
                self._child = EngineChild(await spawn(self._module))
            return None if self._is_stopped else self._child

    async def _stop_idle_engine(self) -> None:
        """End the child when it has no plan left, or the engine is stopped."""
        async with self._changing:
            if self._child is not None and (self._is_stopped or not self._working):
                child, self._child = self._child, None
                await child.end(STOPPED if self._is_stopped else "it was idle")
