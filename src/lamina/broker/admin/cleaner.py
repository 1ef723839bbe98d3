"""``/v1/cleaner`` and a topic's ``compact``: what is compacted, what was, why not, and now."""

import json
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import (
    Refused,
    bad_request,
    json_answer,
    not_found,
    page,
    read_body,
    whole_number,
    window,
)
from lamina.broker.admin.subject import Subject
from lamina.broker.admin.topics import find_topic
from lamina.broker.cleaner.blockers import find_blockers, why_nothing_is_cleanable
from lamina.broker.cleaner.candidates import CleaningCandidate
from lamina.broker.cleaner.history import Outcome, PassRecord
from lamina.broker.cleaner.partition_states import State
from lamina.broker.partitions.partition import Partition
from lamina.broker.turns import in_turns
from lamina.image.topic import Topic
from lamina.settings.cleaner import LOG_CLEANER_BACKOFF_MS, LOG_CLEANER_ENABLE


async def status(subject: Subject, request: Request) -> Response:
    """Every compacted partition that is here, a page of them; with ``topic`` only that topic's."""
    cleaner, settings = subject.cleaner, subject.metadata.settings
    limit, after = window(request)
    topic = request.query_params.get("topic")
    if topic is not None:
        require_topic(subject, topic)
    found = [one for one in cleaner.search.compacted() if topic in (None, one.topic)]
    found.sort(key=lambda one: (one.topic, one.index))
    if after is not None:
        name, _, number = after.rpartition("-")
        behind = (name, whole_number(number, "after"))
        found = [one for one in found if (one.topic, one.index) > behind]
    shown = found[:limit]
    rows = [_row(subject, one) async for one in in_turns(shown, subject.clocks)]
    return json_answer(
        {
            "is_enabled": settings[LOG_CLEANER_ENABLE],
            "why_not": cleaner.why_not(),
            "backoff_ms": settings[LOG_CLEANER_BACKOFF_MS],
            "looked_at_ms": cleaner.search.searched_at_ms,
            "passes": {outcome.value: cleaner.history.passes[outcome] for outcome in Outcome},
            "last_number": cleaner.history.last_number,
            "partitions": rows,
            "next_after": f"{shown[-1].topic}-{shown[-1].index}" if len(found) > limit else None,
        }
    )


def _row(subject: Subject, partition: Partition) -> dict[str, Any]:
    cleaner = subject.cleaner
    key = (partition.topic, partition.index)
    failed, last, opened = cleaner.failed_passes.get(key), cleaner.history.last_of(key), cleaner.open_pass(key)
    state = cleaner.states.state(key)
    row: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.index,
        "state": None if state is State.NONE else state.value,
        "is_wanted": cleaner.is_wanted(key),
        "phase": opened and opened.phase,
        "done_bytes": opened and opened.done_bytes,
        "total_bytes": opened and opened.total_bytes,
        "waits_for": cleaner.engine.waits_for() if opened is not None and opened.phase == "cleaning" else None,
        "error": failed and failed.reason,
        "is_uncleanable": failed is not None and failed.is_uncleanable,
        "attempts": 0 if failed is None else failed.attempts,
        "retry_at_ms": failed and failed.retry_at_ms,
        "last_pass": last and {"number": last.number, "outcome": last.outcome.value, "ended_ms": last.ended_ms},
        "min_cleanable_dirty_ratio": partition.log.config.min_cleanable_dirty_ratio,
    }
    try:
        candidate = cleaner.search.inspect(partition)
    except Exception as error:
        return {**row, "error": row["error"] or str(error)}
    cleanable = candidate.cleanable
    return {
        **row,
        "dirty_ratio": cleanable.dirty_ratio,
        "is_eligible": candidate.is_eligible,
        "first_dirty_offset": cleanable.first_dirty_offset,
        "first_uncleanable_offset": cleanable.first_uncleanable_offset,
        "log_end_offset": partition.log.log_end_offset,
        "clean_bytes": cleanable.clean_bytes,
        "cleanable_bytes": cleanable.cleanable_bytes,
        "overdue_ms": cleanable.overdue_ms,
        "held_back": _held_back(subject, candidate),
    }


def _held_back(subject: Subject, candidate: CleaningCandidate) -> list[str]:
    blockers = find_blockers(candidate.partition.log, candidate.cleanable, subject.clocks.now_ms())
    return [blocker.sentence for blocker in blockers]


async def history(subject: Subject, request: Request) -> Response:
    """The last passes, newest first; with ``topic`` that topic's, with ``since`` those of a higher number."""
    limit, after = window(request)
    topic, since = request.query_params.get("topic"), request.query_params.get("since")
    least = -1 if since is None else whole_number(since, "since")
    before = None if after is None else whole_number(after, "after")
    found = [
        record
        for record in reversed(subject.cleaner.history.records)
        if topic in (None, record.topic) and record.number > least and (before is None or record.number < before)
    ]
    return await page(subject.clocks, "passes", found, limit, _pass, lambda record: record.number)


def _pass(record: PassRecord) -> dict[str, Any]:
    manifest = record.manifest
    said: dict[str, Any] = {}
    if manifest is not None:
        said = {
            "before": asdict(manifest.before),
            "after": asdict(manifest.after),
            "keys": manifest.keys,
            "dropped": asdict(manifest.dropped),
            "horizons": asdict(manifest.horizons),
            "buffer_percent": record.buffer_percent,
            "read_bytes": manifest.bytes_read,
            "written_bytes": manifest.bytes_written,
            "job_seconds": asdict(manifest.seconds),
        }
    return {
        "number": record.number,
        "topic": record.topic,
        "partition": record.partition,
        "outcome": record.outcome.value,
        "reason": record.reason or None,
        "is_manual": record.is_manual,
        "began_ms": record.began_ms,
        "ended_ms": record.ended_ms,
        "first_dirty_offset": record.first_dirty_offset,
        "first_uncleanable_offset": record.first_uncleanable_offset,
        "source_bytes": record.source_bytes,
        "seconds": {**asdict(record.seconds), "total": record.seconds.total},
        **said,
    }


async def compact(subject: Subject, request: Request) -> Response:
    """Have a topic cleaned as soon as possible; what cannot be is said at once."""
    cleaner, topic = subject.cleaner, find_topic(subject, request)
    partition, roll = _wish(await read_body(request))
    if not subject.metadata.config_of(topic.name).compact:
        first = f"`lamina configs set --topic {topic.name} cleanup.policy=compact` changes that"
        raise Refused(409, "conflict", f"the cleanup.policy of {topic.name} does not compact; {first}")
    why_not = cleaner.why_not()
    if why_not is not None:
        raise Refused(409, "conflict", f"no topic is being compacted: {why_not}")
    since = cleaner.history.last_number
    rows = [_want(subject, one, roll=roll) for one in partitions_of(subject, topic, partition)]
    return json_answer({"topic": topic.name, "since": since, "partitions": rows}, 202)


def _want(subject: Subject, partition: Partition, *, roll: bool) -> dict[str, Any]:
    cleaner = subject.cleaner
    candidate = cleaner.want(partition, roll=roll)
    is_wanted = cleaner.is_wanted((partition.topic, partition.index))
    return {
        "partition": partition.index,
        "is_wanted": is_wanted,
        "is_under_way": cleaner.open_pass((partition.topic, partition.index)) is not None,
        "reason": None if is_wanted else why_nothing_is_cleanable(candidate.cleanable, _held_back(subject, candidate)),
    }


def _wish(body: bytes) -> tuple[int | None, bool]:
    """From ``{"partition": 0, "roll": true}``, both optional."""
    try:
        given = json.loads(body) if body.strip() else {}
        partition, roll = given.get("partition"), given.get("roll", False)
        if type(partition) not in (int, type(None)) or type(roll) is not bool or set(given) - {"partition", "roll"}:
            raise ValueError
    except (ValueError, AttributeError, RecursionError):
        raise bad_request('the body must be {"partition": NUMBER, "roll": BOOLEAN} in JSON, both optional') from None
    return partition, roll


def partitions_of(subject: Subject, topic: Topic, index: int | None) -> list[Partition]:
    if index is not None and not 0 <= index < len(topic.partitions):
        raise not_found(f"topic {topic.name!r} has {len(topic.partitions)} partitions and no {index}")
    indexes = range(len(topic.partitions)) if index is None else [index]
    found = [subject.partitions.get(topic.name, one) for one in indexes]
    for one in found:
        one.check_online()
    return found


def require_topic(subject: Subject, name: str) -> Topic:
    topic = subject.metadata.image.topics.get(name)
    if topic is None:
        raise not_found(f"there is no topic {name[:249]!r}")
    return topic
