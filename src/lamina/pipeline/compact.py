"""Distributing the passes of a batch of logs over Spark's tasks.

Owns which way a log goes. Most are one task each, all in one job. One whose keys do not fit the memory of a task goes
through the shuffle (``spread``), and so does a large one on a cluster that would stand idle. A log that fails does not
fail the others; where it takes the whole job with it, the rest are done again one by one. Must not know the broker.
"""

import os
from collections.abc import Callable, Sequence

from lamina.cleaning.answers import Answer, Failure
from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import TooManyKeys
from lamina.cleaning.rewriting import groups_of
from lamina.pipeline.session import Session
from lamina.pipeline.spread import clean_spread
from lamina.pipeline.tasks import FOLDER_GONE, clean_alone, share, threads_of
from lamina.pipeline.trouble import SparkEnded, end_sentence, has_ended, sentence_of

_SPREAD_BYTES = 256 * 1024 * 1024
"""A smaller log is done before its pieces are handed out."""

Say = Callable[[Answer], None]
Alone = Answer | TooManyKeys


def size_of(plan: Plan) -> int:
    return sum(segment.size_bytes for segment in plan.segments)


def clean_batch(session: Session, plans: Sequence[Plan], say: Say) -> None:
    """Clean some logs; ``say`` gets one answer for each as soon as there is one. Raises :class:`SparkEnded`."""

    def say_of(plan: Plan, answer: Answer) -> None:
        say(_unseen(plan) if isinstance(answer, Failure) and _is_unseen(plan, answer) else answer)

    plans = sorted(plans, key=size_of, reverse=True)
    apart = [plan for plan in plans if _pays_to_spread(session, plan, len(plans))]
    together = [plan for plan in plans if plan not in apart]
    for plan, result in zip(together, _clean_together(session, together), strict=True):
        if isinstance(result, TooManyKeys):
            apart.append(plan)
        else:
            say_of(plan, result)
    for plan in apart:
        say_of(plan, _spread(session, plan))


def _is_unseen(plan: Plan, failure: Failure) -> bool:
    """A task found no folder where there is one: it ran on a machine with other disks."""
    return failure.reason == FOLDER_GONE and os.path.isdir(plan.pass_folder)


def _unseen(plan: Plan) -> Failure:
    return Failure(
        plan.plan_id,
        f"an executor does not see {plan.directory}: the machines of lamina.spark.master need the log directories, "
        f"under the same paths",
    )


def _pays_to_spread(session: Session, plan: Plan, plans: int) -> bool:
    """Threads of one task use one machine; a cluster has more."""
    if session.is_local or size_of(plan) < _SPREAD_BYTES:
        return False
    return session.slots >= 2 * plans and len(groups_of(plan)) > 1


def _clean_together(session: Session, plans: Sequence[Plan]) -> list[Alone]:
    try:
        return _clean_alone(session, plans)
    except Exception as error:
        _check_alive(session, error)
        if len(plans) == 1:
            return [Failure(plans[0].plan_id, sentence_of(error))]
    return [result for plan in plans for result in _clean_together(session, [plan])]


def _clean_alone(session: Session, plans: Sequence[Plan]) -> list[Alone]:
    """One job, one task a log, the largest begun first."""
    if not plans:
        return []
    slots = session.slots
    at_once = min(slots, len(plans))
    threads = threads_of(plans, slots) if session.is_local else [1] * len(plans)
    work = [(share(plan, at_once), count) for plan, count in zip(plans, threads, strict=True)]
    results: list[Alone] = session.context.parallelize(work, len(work)).map(lambda one: clean_alone(*one)).collect()
    return results


def _spread(session: Session, plan: Plan) -> Answer:
    try:
        answer = clean_spread(session.context, share(plan, session.slots), session.slots)
        session.forget_shuffles()
        return answer
    except Exception as error:
        _check_alive(session, error)
        return Failure(plan.plan_id, sentence_of(error))


def _check_alive(session: Session, error: Exception) -> None:
    """Who has lost Spark answers for no log: with the engine's end all that it had not answered is failed."""
    if not has_ended(error) and session.is_alive:
        return
    raise SparkEnded(end_sentence(error, session.master)) from error
