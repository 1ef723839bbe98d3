"""``/v1/cleaner`` and a topic's ``compact``: what is compacted, what was, why not, and now."""

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import (
    Refused,
    bad_request,
    in_turns,
    json_answer,
    not_found,
    page,
    whole_number,
    window,
)
from lamina.broker.admin.bodies import read_body
from lamina.broker.admin.subject import Subject
from lamina.broker.admin.topics import find_topic
from lamina.broker.cleaner.explain import Standing, explain
from lamina.broker.cleaner.finding import Finder, Found
from lamina.broker.cleaner.history import Outcome, PassRecord
from lamina.broker.cleaner.remains import why_deleted, why_nothing, why_uncleanable
from lamina.broker.cleaner.sight import Sight
from lamina.broker.partition import Partition
from lamina.errors import CorruptMessage
from lamina.image.topic import Topic
from lamina.settings.broker import LAMINA_DECOMPRESSED_BATCH_MAX_BYTES
from lamina.settings.cleaner import LAMINA_CLEANER_EXPIRE_IDLE, LOG_CLEANER_BACKOFF_MS, LOG_CLEANER_ENABLE


async def status(subject: Subject, request: Request) -> Response:
    """Every compacted partition that is here, a page of them; with ``topic`` only that topic's."""
    node, cleaner = subject.node, subject.node.cleaner
    limit, after = window(request)
    topic = request.query_params.get("topic")
    if topic is not None:
        _require_topic(subject, topic)
    found = [one for one in cleaner.lookout.compacted() if topic in (None, one.topic)]
    found.sort(key=lambda one: (one.topic, one.index))
    if after is not None:
        name, _, number = after.rpartition("-")
        behind = (name, whole_number(number, "after"))
        found = [one for one in found if (one.topic, one.index) > behind]
    shown = found[:limit]
    rows = await in_turns(shown, partial(_row, subject))
    return json_answer(
        {
            "is_enabled": node.settings[LOG_CLEANER_ENABLE],
            "why_not": cleaner.why_not(),
            "backoff_ms": node.settings[LOG_CLEANER_BACKOFF_MS],
            "looked_at_ms": cleaner.lookout.looked_at_ms,
            "passes": {outcome.value: cleaner.history.passes[outcome] for outcome in Outcome},
            "last_number": cleaner.history.last_number,
            "partitions": rows,
            "next_after": f"{shown[-1].topic}-{shown[-1].index}" if len(found) > limit else None,
        }
    )


def _row(subject: Subject, partition: Partition) -> dict[str, Any]:
    cleaner = subject.node.cleaner
    key = (partition.topic, partition.index)
    trouble, last, opened = cleaner.troubles.get(key), cleaner.history.last_of(key), cleaner.open_pass(key)
    row: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.index,
        "state": cleaner.states.state(key).value,
        "is_wanted": cleaner.is_wanted(key),
        "phase": opened and opened.phase,
        "done_bytes": opened and opened.done_bytes,
        "total_bytes": opened and opened.total_bytes,
        "error": trouble and trouble.reason,
        "is_uncleanable": trouble is not None and trouble.is_uncleanable,
        "attempts": 0 if trouble is None else trouble.attempts,
        "retry_at_ms": trouble and trouble.retry_at_ms,
        "last_pass": last and {"number": last.number, "outcome": last.outcome.value, "ended_ms": last.ended_ms},
        "min_cleanable_dirty_ratio": partition.log.config.min_cleanable_dirty_ratio,
    }
    try:
        sight = cleaner.lookout.look(partition)
    except Exception as error:
        return {**row, "error": row["error"] or str(error)}
    cleanable = sight.cleanable
    return {
        **row,
        "dirty_ratio": cleanable.dirty_ratio,
        "is_eligible": sight.is_eligible,
        "first_dirty_offset": cleanable.first_dirty_offset,
        "first_uncleanable_offset": cleanable.first_uncleanable_offset,
        "log_end_offset": partition.log.log_end_offset,
        "clean_bytes": cleanable.clean_bytes,
        "cleanable_bytes": cleanable.cleanable_bytes,
        "overdue_ms": cleanable.overdue_ms,
        "held_back": _held_back(subject, sight),
    }


def _held_back(subject: Subject, sight: Sight) -> list[str]:
    holds = why_uncleanable(sight.partition.log, sight.cleanable, subject.node.now_ms())
    return [hold.sentence for hold in holds]


async def history(subject: Subject, request: Request) -> Response:
    """The last passes, newest first; with ``topic`` that topic's, with ``since`` those of a higher number."""
    limit, after = window(request)
    topic, since = request.query_params.get("topic"), request.query_params.get("since")
    least = -1 if since is None else whole_number(since, "since")
    before = None if after is None else whole_number(after, "after")
    found = [
        record
        for record in reversed(subject.node.cleaner.history.records)
        if topic in (None, record.topic) and record.number > least and (before is None or record.number < before)
    ]
    return await page("passes", found, limit, _pass, lambda record: record.number)


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
    cleaner, topic = subject.node.cleaner, find_topic(subject, request)
    partition, roll = _wish(await read_body(request))
    if not subject.node.config_of(topic.name).compact:
        raise Refused(409, "conflict", f"the cleanup.policy of {topic.name} does not compact")
    why_not = cleaner.why_not()
    if why_not is not None:
        raise Refused(409, "conflict", f"no topic is being compacted: {why_not}")
    since = cleaner.history.last_number
    rows = [_want(subject, one, roll=roll) for one in _partitions(subject, topic, partition)]
    return json_answer({"topic": topic.name, "since": since, "partitions": rows}, 202)


def _want(subject: Subject, partition: Partition, *, roll: bool) -> dict[str, Any]:
    cleaner = subject.node.cleaner
    sight = cleaner.want(partition, roll=roll)
    is_wanted = cleaner.is_wanted((partition.topic, partition.index))
    return {
        "partition": partition.index,
        "is_wanted": is_wanted,
        "reason": None if is_wanted else why_nothing(sight.cleanable, _held_back(subject, sight)),
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


def _partitions(subject: Subject, topic: Topic, index: int | None) -> list[Partition]:
    if index is not None and not 0 <= index < len(topic.partitions):
        raise not_found(f"topic {topic.name!r} has {len(topic.partitions)} partitions and no {index}")
    indexes = range(len(topic.partitions)) if index is None else [index]
    found = [subject.node.partitions.get(topic.name, one) for one in indexes]
    for one in found:
        one.check_online()
    return found


async def explained(subject: Subject, request: Request) -> Response:
    """Why a record is still there: ``topic`` and, of ``offset``, ``key`` and ``key_base64``, one."""
    topic, index, wanted = _asked(subject, request)
    answers, unseen = [], []
    for partition in _partitions(subject, topic, index):
        found, looked_to = await _find(subject, partition, wanted)
        if found is not None or isinstance(wanted, int):
            answers.append(_explanation(subject, partition, found, wanted))
        elif looked_to is not None:
            unseen.append(f"; of partition {partition.index} only what comes before offset {looked_to} was looked at")
    if not answers:
        raise not_found(f"topic {topic.name!r} has no record with that key{''.join(unseen)}")
    return json_answer({"topic": topic.name, "records": answers})


def _asked(subject: Subject, request: Request) -> tuple[Topic, int | None, int | bytes]:
    query = request.query_params
    name = query.get("topic")
    if name is None:
        raise bad_request("topic is missing")
    topic = _require_topic(subject, name)
    index = None if "partition" not in query else whole_number(query["partition"], "partition")
    given = [one for one in ("offset", "key", "key_base64") if one in query]
    if len(given) != 1:
        raise bad_request("give one of offset, key and key_base64")
    if given == ["offset"]:
        if index is None and len(topic.partitions) > 1:
            raise bad_request(f"topic {name!r} has {len(topic.partitions)} partitions: say which with partition")
        return topic, index or 0, whole_number(query["offset"], "offset")
    if given == ["key"]:
        return topic, index, query["key"].encode()
    try:
        return topic, index, b64decode(query["key_base64"], validate=True)
    except (NotBase64, ValueError):
        raise bad_request("key_base64 is not base64") from None


def _require_topic(subject: Subject, name: str) -> Topic:
    topic = subject.node.image.topics.get(name)
    if topic is None:
        raise not_found(f"there is no topic {name[:249]!r}")
    return topic


async def _find(subject: Subject, partition: Partition, wanted: int | bytes) -> tuple[Found | None, int | None]:
    """The record, and before which offset the search ended if its time was over."""
    log = partition.log
    first = wanted if isinstance(wanted, int) else 0
    leases = [segment.lease(0, segment.size_bytes) for segment in log.segments.between(first, log.log_end_offset)]
    aborted = [entry for segment in log.segments for entry in segment.aborted.entries()]
    producers = log.producers.producers.values()
    open_since = {one.producer_id: one.open_since for one in producers if one.open_since is not None}
    finder = Finder(leases, aborted, open_since, subject.node.settings[LAMINA_DECOMPRESSED_BATCH_MAX_BYTES])
    try:
        if isinstance(wanted, int):
            return await subject.node.threads.run(partial(finder.at, wanted)), finder.looked_to
        return await subject.node.threads.run(partial(finder.last_of, wanted)), finder.looked_to
    except CorruptMessage as error:
        raise Refused(500, "damaged", f"{log.name} cannot be read: {error}") from None
    finally:
        for lease in leases:
            lease.give_back()


def _explanation(subject: Subject, partition: Partition, found: Found | None, wanted: int | bytes) -> dict[str, Any]:
    if found is None:
        assert isinstance(wanted, int)
        return {
            "partition": partition.index,
            "offset": wanted,
            "is_there": False,
            "reasons": [_why_gone(partition, wanted)],
        }
    row: dict[str, Any] = {
        "partition": partition.index,
        "offset": found.offset,
        "is_there": found.offset >= partition.log.log_start_offset,
        "timestamp_ms": found.timestamp_ms,
        "key_base64": None if found.key is None else b64encode(found.key).decode(),
        "is_tombstone": found.is_tombstone,
        "is_marker": found.is_control,
        "delete_horizon_ms": found.delete_horizon_ms,
    }
    node, cleaner = subject.node, subject.node.cleaner
    key = (partition.topic, partition.index)
    if not partition.log.config.compact:
        policy = f"the cleanup.policy of {partition.topic} does not compact: keys decide nothing"
        return {**row, "goes": False, "earliest_ms": None, "reasons": [policy, *why_deleted(partition.log.config)]}
    told = explain(
        found,
        Standing(
            cleaner.lookout.look(partition),
            cleaner.states.state(key),
            cleaner.troubles.get(key),
            cleaner.why_not(),
            node.settings[LAMINA_CLEANER_EXPIRE_IDLE],
            node.now_ms(),
        ),
    )
    return {**row, "goes": told.goes, "earliest_ms": told.earliest_ms, "reasons": list(told.reasons)}


def _why_gone(partition: Partition, offset: int) -> str:
    log = partition.log
    if offset >= log.log_end_offset:
        return f"{log.name} ends at {log.log_end_offset}: nothing was written there yet"
    if offset < log.log_start_offset:
        return f"{log.name} starts at {log.log_start_offset}: what was before is deleted"
    return "no record is there: compaction removed it, or the offset belongs to a batch that was emptied"
