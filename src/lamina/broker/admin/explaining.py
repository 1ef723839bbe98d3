"""The route that says why a record is still there.

Owns the question and the answer's rows; the reasons are the cleaner's. Must not decide anything.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from contextlib import ExitStack
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import (
    Refused,
    bad_request,
    json_answer,
    not_found,
    whole_number,
)
from lamina.broker.admin.cleaner import partitions_of, require_topic
from lamina.broker.admin.scan_pool import Scan
from lamina.broker.admin.subject import Subject
from lamina.broker.cleaner.blockers import retention_sentences
from lamina.broker.cleaner.explain import PartitionView, explain, unsearched_text
from lamina.broker.cleaner.record_search import (
    RecordSearch,
    SearchAt,
    SearchLastOf,
    SearchResult,
    SegmentRange,
)
from lamina.broker.partitions.batch_rules import decompressed_limit
from lamina.broker.partitions.partition import Partition
from lamina.errors import CorruptMessage
from lamina.image.topic import Topic
from lamina.log.partition_log import PartitionLog
from lamina.settings.broker import LAMINA_DECOMPRESSED_BATCH_MAX_BYTES
from lamina.settings.cleaner import LAMINA_CLEANER_EXPIRE_IDLE

_SEGMENTS_AT_A_TIME = 8
"""A log may have thousands, and each one that is read takes a descriptor."""


async def explained(subject: Subject, request: Request) -> Response:
    """Why a record is still there: ``topic`` and, of ``offset``, ``key`` and ``key_base64``, one."""
    topic, index, wanted = _asked(subject, request)
    answers = []
    with subject.scan_pool.scan() as scan:
        for partition in partitions_of(subject, topic, index):
            search = await _find(subject, scan, partition, wanted)
            if search.found is not None or search.unsearched is not None or isinstance(wanted, int):
                answers.append(_explanation(subject, partition, search, wanted))
    if not answers:
        where = f"topic {topic.name!r}" if index is None else f"partition {index} of topic {topic.name!r}"
        raise not_found(
            f"{where} has no record with that key: it was removed, or never written; "
            f"`lamina consume {topic.name} --format '%k'` shows the keys"
        )
    return json_answer({"topic": topic.name, "records": answers})


def _asked(subject: Subject, request: Request) -> tuple[Topic, int | None, int | bytes]:
    query = request.query_params
    name = query.get("topic")
    if name is None:
        raise bad_request("topic is missing")
    topic = require_topic(subject, name)
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


async def _find(subject: Subject, scan: Scan, partition: Partition, wanted: int | bytes) -> SearchResult:
    log = partition.log
    search = _search(subject, scan, log, wanted)
    try:
        while search.left and not search.is_done:
            ranges, leases = _lend(log, search)
            if not ranges:
                break  # They were deleted meanwhile.
            await scan.run(partial(search.read, ranges), leases.close)
    except CorruptMessage as error:
        raise Refused(500, "damaged", f"{log.name} cannot be read: {error}") from None
    return search.result


def _search(subject: Subject, scan: Scan, log: PartitionLog, wanted: int | bytes) -> RecordSearch:
    """A search that goes by the transactions as they are now."""
    aborted = [entry for segment in log.segments for entry in segment.aborted.entries()]
    open_since = {
        one.producer_id: one.current_txn_first_offset
        for one in log.producers.producers.values()
        if one.current_txn_first_offset is not None
    }
    end = log.log_end_offset
    limit_bytes = decompressed_limit(log.config, subject.metadata.settings[LAMINA_DECOMPRESSED_BATCH_MAX_BYTES])
    if isinstance(wanted, int):
        return SearchAt(wanted, end, aborted, open_since, limit_bytes, scan.is_over)
    start = log.segments.first.base_offset
    return SearchLastOf(wanted, start, end, aborted, open_since, limit_bytes, scan.is_over)


def _lend(log: PartitionLog, search: RecordSearch) -> tuple[list[SegmentRange], ExitStack]:
    """The segments that a search reads next, and what gives them back. Others may have taken their places meanwhile."""
    log.require_online()
    left = search.left
    segments = log.segments.between(left.start, left.stop)
    ends = [*(segment.base_offset for segment in segments[1:]), left.stop]
    several = slice(-_SEGMENTS_AT_A_TIME, None) if search.is_backwards else slice(_SEGMENTS_AT_A_TIME)
    with ExitStack() as leases:
        try:
            ranges = [
                SegmentRange(segment.base_offset, end, leases.enter_context(segment.lease(0, segment.size_bytes)))
                for segment, end in zip(segments[several], ends[several], strict=False)
            ]
        except OSError as error:
            raise log.fail(error) from error
        return ranges, leases.pop_all()


def _explanation(subject: Subject, partition: Partition, search: SearchResult, wanted: int | bytes) -> dict[str, Any]:
    found, unsearched = search
    if found is None:
        offset = wanted if isinstance(wanted, int) else None
        reasons = [] if offset is None else [_why_gone(partition, offset)]
        if unsearched is not None:
            reasons = [unsearched_text(unsearched)]
        return {
            "partition": partition.index,
            "offset": offset,
            "is_there": None if unsearched else False,
            "unsearched": unsearched,
            "reasons": reasons,
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
        "unsearched": unsearched,
    }
    cleaner, settings = subject.cleaner, subject.metadata.settings
    key = (partition.topic, partition.index)
    if not partition.log.config.compact:
        policy = f"the cleanup.policy of {partition.topic} does not compact: keys decide nothing"
        return {
            **row,
            "goes": False,
            "earliest_ms": None,
            "reasons": [policy, *retention_sentences(partition.log.config)],
        }
    told = explain(
        found,
        PartitionView(
            cleaner.search.inspect(partition),
            cleaner.states.state(key),
            cleaner.failed_passes.get(key),
            cleaner.why_not(),
            settings[LAMINA_CLEANER_EXPIRE_IDLE],
            subject.clocks.now_ms(),
        ),
        unsearched,
    )
    return {**row, "goes": told.goes, "earliest_ms": told.earliest_ms, "reasons": list(told.reasons)}


def _why_gone(partition: Partition, offset: int) -> str:
    log = partition.log
    if offset >= log.log_end_offset:
        return f"{log.name} ends at {log.log_end_offset}: nothing was written there yet"
    if offset < log.log_start_offset:
        return f"{log.name} starts at {log.log_start_offset}: what was before is deleted"
    return "no record is there: compaction removed it, or the offset belongs to a batch that was emptied"
