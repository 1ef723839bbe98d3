"""Distributing passes over Spark's tasks, as they come.

Owns which way a log goes, and the threads that wait for Spark: one a slot and one more, each with a job of one task, so
that every answer is there as soon as its task is over and no log waits for a huge one. One whose keys do not fit the
memory of a task goes through the shuffle (``distributed_pass``), and so does a large one on a cluster that would be
idle. A log that fails does not fail the others; where it takes its task with it, the rest are done again one by one.
Must not know the broker.
"""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.cleaning.failures import TooManyKeys
from lamina.cleaning.rewriting import groups_of
from lamina.pipeline.backlog import Backlog, Work
from lamina.pipeline.distributed_pass import clean_distributed
from lamina.pipeline.session import Session
from lamina.pipeline.spark_errors import SparkEnded, end_sentence, has_ended, sentence_of
from lamina.pipeline.tasks import FOLDER_GONE, clean_alone

_DISTRIBUTED_BYTES = 256 * 1024 * 1024
"""A smaller log is cleaned before its pieces are handed out."""

_AHEAD = 1
"""So many jobs of small logs wait in Spark for a slot, which would be idle while the next one is made."""

Alone = Answer | TooManyKeys


class Compaction:
    """``say`` gets one answer for each plan, ``ended`` the reason when Spark is gone; both on threads of this one."""

    def __init__(self, session: Session, say: Callable[[Answer], None], ended: Callable[[Exception], None]) -> None:
        self._session = session
        self._slots = session.slots
        """As last seen: a cluster may grow."""
        self._say = say
        self._ended = ended
        self._backlog = Backlog()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._distributing = threading.Lock()

    def add(self, plan: Plan) -> None:
        with self._changed:
            self._backlog.add(plan)
            if len(self._backlog) > self._idle and self._threads < self._slots + _AHEAD:
                self._threads += 1
                threading.Thread(target=self._run, name="lamina-jobs", daemon=True).start()
            self._changed.notify()

    def drop(self, plan_id: str) -> bool:
        """Its result is no longer wanted. Returns whether it had not begun."""
        with self._changed:
            return self._backlog.drop(plan_id)

    @property
    def begun(self) -> list[Plan]:
        with self._changed:
            return self._backlog.begun

    def _run(self) -> None:
        try:
            while True:
                work = self._take()
                self._do(work)
                with self._changed:
                    self._backlog.finish(work)
                    self._changed.notify_all()
        except Exception as error:
            self._ended(error)

    def _take(self) -> Work:
        self._slots = self._session.slots
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._backlog.is_ready(self._slots))
            self._idle -= 1
            return self._backlog.take(self._slots)

    def _do(self, work: Work) -> None:
        if len(work.plans) == 1 and self._pays_to_distribute(work.plans[0], work.at_once):
            self._say(_as_seen(work.plans[0], self._distribute(work.plans[0])))
            return
        for plan, result in zip(work.plans, self._clean(work, work.plans), strict=True):
            self._say(_as_seen(plan, self._distribute(plan) if isinstance(result, TooManyKeys) else result))

    def _pays_to_distribute(self, plan: Plan, plans: int) -> bool:
        """Threads of one task use one machine; a cluster has more."""
        if self._session.is_local or plan.source_bytes < _DISTRIBUTED_BYTES:
            return False
        return self._session.slots >= 2 * plans and len(groups_of(plan)) > 1

    def _clean(self, work: Work, plans: Sequence[Plan]) -> list[Alone]:
        """One job of one task."""
        threads = work.threads if self._session.is_local else 1
        given = [(self._limited(plan, work.memory_bytes, work.at_once), threads) for plan in plans]
        try:
            job = self._session.context.parallelize([given], 1)
            results: list[Alone] = job.flatMap(lambda one: [clean_alone(*each) for each in one]).collect()
        except Exception as error:
            self._check_alive(error)
            if len(plans) == 1:
                return [Failure(plans[0].plan_id, sentence_of(error))]
        else:
            return results
        return [result for plan in plans for result in self._clean(work, [plan])]

    def _distribute(self, plan: Plan) -> Answer:
        """One at a time: each has all slots."""
        slots = self._session.slots
        with self._distributing:
            try:
                limited = self._limited(plan, max(plan.memory_limit_bytes // slots, 1), slots)
                answer = clean_distributed(self._session.context, limited, slots)
                self._session.forget_shuffles()
                return answer
            except Exception as error:
                self._check_alive(error)
                return Failure(plan.plan_id, sentence_of(error))

    def _limited(self, plan: Plan, memory_bytes: int, tasks: int) -> Plan:
        """The plan for one of so many tasks at the same time.

        On one machine they all keep to one limit of bytes a second; in a cluster each has its part of it (fact 97).
        """
        plan = replace(plan, memory_limit_bytes=memory_bytes)
        if self._session.is_local:
            return replace(plan, throttle_path=f"{self._session.directory}/scratch/throttle", job_syncs=False)
        rate = plan.throttle_bytes_per_second
        return replace(plan, throttle_bytes_per_second=None if rate is None else rate / tasks)

    def _check_alive(self, error: Exception) -> None:
        """Who has lost Spark answers for no log: with the engine's end all that it had not answered is failed."""
        if has_ended(error) or not self._session.is_alive:
            raise SparkEnded(end_sentence(error, self._session.master)) from error


def _as_seen(plan: Plan, answer: Answer) -> Answer:
    """A task that found no folder where there is one ran on a machine with other disks."""
    if not isinstance(answer, Failure) or answer.reason != FOLDER_GONE or not os.path.isdir(plan.pass_folder):
        return answer
    return Failure(
        plan.plan_id,
        f"an executor does not see {plan.directory}: the machines of lamina.spark.master need the log directories, "
        f"under the same paths",
    )
