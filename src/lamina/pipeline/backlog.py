"""The plans that wait for a task, and what each task gets: which plans, how much memory, how many threads.

Owns the order, the largest first, and the sum of the memory that tasks have at the same time. Small logs go several to
a task, because a job costs more than cleaning a small log; towards the end tasks get smaller, so that none is left
working alone. Must not know Spark.
"""

from dataclasses import dataclass

from lamina.cleaning.contract import Plan

_MOST_BYTES = 128 * 1024 * 1024
"""Of the logs of one task: they are answered together."""
_FEWEST_BYTES = 32 * 1024 * 1024
_SMALLEST_PART = 4
"""Where others have taken all memory, a task still gets this part of its share."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one task gets."""

    plans: tuple[Plan, ...]
    threads: int
    memory_bytes: int
    """For the keys of one log at a time."""
    at_once: int
    """Tasks that can run at the same time, this one included."""


class Backlog:
    def __init__(self) -> None:
        self._waiting: dict[str, Plan] = {}
        self._begun: list[Work] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def is_ready(self, slots: int) -> bool:
        """Whether there is work for a free slot, or small logs to hand out ahead of the next that becomes free."""
        largest_bytes = max((plan.source_bytes for plan in self._waiting.values()), default=-1)
        return largest_bytes >= 0 and (len(self._begun) < slots or largest_bytes <= _FEWEST_BYTES)

    @property
    def begun(self) -> list[Plan]:
        return [plan for work in self._begun for plan in work.plans]

    def add(self, plan: Plan) -> None:
        self._waiting[plan.plan_id] = plan

    def drop(self, plan_id: str) -> bool:
        """Its result is no longer wanted. Returns whether it had not begun."""
        return self._waiting.pop(plan_id, None) is not None

    def take(self, slots: int) -> Work:
        """The next piece of work, for one of so many slots. There must be a plan that waits."""
        waiting = sorted(self._waiting.values(), key=lambda plan: plan.source_bytes, reverse=True)
        waiting_bytes = sum(plan.source_bytes for plan in waiting)
        all_bytes = waiting_bytes + sum(plan.source_bytes for plan in self.begun)
        at_once = min(slots, len(waiting) + len(self._begun))
        taken = waiting[:1]
        target_bytes = min(max(waiting_bytes // (2 * slots), _FEWEST_BYTES), _MOST_BYTES)
        taken_bytes = taken[0].source_bytes
        for plan in waiting[1:]:
            # Plans of one task have one limit, unless the setting has changed between them.
            if (
                taken_bytes + plan.source_bytes <= target_bytes
                and plan.memory_limit_bytes == taken[0].memory_limit_bytes
            ):
                taken.append(plan)
                taken_bytes += plan.source_bytes
        for plan in taken:
            del self._waiting[plan.plan_id]
        threads = min(max(round(slots * taken_bytes / (all_bytes or 1)), 1), slots)
        memory_bytes = self._memory_bytes(taken[0].memory_limit_bytes, slots, at_once)
        work = Work(tuple(taken), threads, memory_bytes, at_once)
        self._begun.append(work)
        return work

    def finish(self, work: Work) -> None:
        self._begun.remove(work)

    def _memory_bytes(self, limit_bytes: int, slots: int, at_once: int) -> int:
        """The limit is what all tasks together may have; what others have taken is gone."""
        free_bytes = limit_bytes - sum(work.memory_bytes for work in self._begun)
        return max(min(limit_bytes // at_once, free_bytes), limit_bytes // (_SMALLEST_PART * slots), 1)
