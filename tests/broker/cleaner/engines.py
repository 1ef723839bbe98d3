"""Engines for tests: the small job of tests/cleaning on a thread, held back or broken at will."""

import asyncio
from collections.abc import Callable

from lamina.broker.cleaner.engine_child import Progress
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer, Failure
from tests.cleaning.job import do


class JobEngine:
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        """Every plan that came."""
        self.lacks: str | None = None
        self.failure: Callable[[Plan], Failure | None] = lambda plan: None
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens on the loop while the job works."""
        self.holds: dict[str, asyncio.Event] = {}
        """Topics whose jobs do not end before this."""
        self.cancelled: list[str] = []
        self.is_stopped = False

    def missing(self) -> str | None:
        return self.lacks

    def waits_for(self) -> str | None:
        return None

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        self.plans.append(plan)
        failed = self.failure(plan)
        answer: Answer = await asyncio.to_thread(do, plan) if failed is None else failed
        progress(plan.source_bytes, plan.source_bytes)
        if plan.topic in self.holds:
            await self.holds[plan.topic].wait()
            if self.is_stopped:
                return Failure(plan.plan_id, "the broker stops")
        found = self.meanwhile()
        if asyncio.iscoroutine(found):
            await found
        return answer

    def cancel(self, plan_id: str) -> None:
        self.cancelled.append(plan_id)

    async def stop(self) -> None:
        self.is_stopped = True
        for hold in self.holds.values():
            hold.set()
