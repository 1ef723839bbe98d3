"""Engines for tests: the small job of tests/cleaning on a thread, held back or broken at will."""

import asyncio
from collections.abc import Callable, Sequence

from lamina.broker.cleaner.engine import Progress
from lamina.cleaning.answers import Answer, Failure
from lamina.cleaning.contract import Plan
from tests.cleaning.job import do


class JobEngine:
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        """Every plan that came."""
        self.lacks: str | None = None
        self.failure: Callable[[Plan], Failure | None] = lambda plan: None
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens on the loop while the job works."""
        self.cancelled: list[str] = []
        self.is_stopped = False

    def missing(self) -> str | None:
        return self.lacks

    async def clean(self, plans: Sequence[Plan], progress: Progress) -> list[Answer]:
        self.plans += plans
        answers: list[Answer] = []
        for plan in plans:
            failed = self.failure(plan)
            answers.append(await asyncio.to_thread(do, plan) if failed is None else failed)
            size_bytes = sum(segment.size_bytes for segment in plan.segments)
            progress(plan.plan_id, size_bytes, size_bytes)
        found = self.meanwhile()
        if asyncio.iscoroutine(found):
            await found
        return answers

    def cancel(self, plan_id: str) -> None:
        self.cancelled.append(plan_id)

    async def stop(self) -> None:
        self.is_stopped = True
