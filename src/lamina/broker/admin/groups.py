"""``/v1/groups``: consumer groups, their members, and how far each has read."""

from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import Refused, json_answer, not_found, page, window
from lamina.broker.admin.subject import Subject
from lamina.broker.coordination.group_coordinator import GroupShardOnLog
from lamina.coordinators.group_requests import (
    ClassicDescription,
    ConsumerDescription,
    DescribedConsumer,
    DescribedMember,
    FetchedOffset,
    GroupListing,
)
from lamina.coordinators.group_shard import GroupShard
from lamina.coordinators.records.consumer_protocol import read_assignment
from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.errors import CoordinatorLoadInProgress, CorruptMessage, GroupIdNotFound, NotCoordinator

_CONSUMER = "consumer"


async def groups(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    # Groups that are being loaded, or whose log is offline, are not known.
    found = [one async for one in subject.groups.loaded_listings() if after is None or one.group_id > after]
    found.sort()
    return await page(subject.clocks, "groups", found, limit, _summary, lambda one: one.group_id)


def _summary(one: GroupListing) -> dict[str, Any]:
    return {
        "group": one.group_id,
        "type": one.type,
        "state": one.state,
        "protocol_type": one.protocol_type,
        "members": one.member_count,
    }


async def group(subject: Subject, request: Request) -> Response:
    group_id = request.path_params["group"]
    machine, shard = _machine_of(subject, group_id)
    try:
        described: ClassicDescription | ConsumerDescription = machine.describe(group_id)
    except GroupIdNotFound:
        described = _consumers(machine, group_id)
    rest = _classic(described) if isinstance(described, ClassicDescription) else _consumer(subject, described)
    return json_answer(
        {
            "group": group_id,
            "state": described.state,
            "coordinator_partition": shard.log.partition.index,
            "offsets": machine.offsets.count(group_id),
            **rest,
        }
    )


def _consumers(machine: GroupShard, group_id: str) -> ConsumerDescription:
    try:
        return machine.describe_consumers(group_id)
    except GroupIdNotFound:
        raise not_found(f"there is no group {group_id!r}") from None


def _classic(group: ClassicDescription) -> dict[str, Any]:
    is_readable = group.protocol_type == _CONSUMER
    return {
        "type": "classic",
        "protocol_type": group.protocol_type,
        "generation": group.generation,
        "protocol": group.protocol or None,
        "leader": group.leader,
        "members": [
            {**_member(one), "assigned": _assigned(one.assignment) if is_readable else None} for one in group.members
        ],
    }


def _consumer(subject: Subject, group: ConsumerDescription) -> dict[str, Any]:
    return {
        "type": "consumer",
        "protocol_type": _CONSUMER,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "assignor": group.assignor,
        "members": [
            {
                **_member(one),
                "epoch": one.member_epoch,
                "topics": one.topics,
                "regex": one.regex,
                "is_classic": one.type == 0,
                "assigned": _named(subject, one.assigned),
                "target": _named(subject, one.target),
            }
            for one in group.members
        ],
    }


def _member(one: DescribedMember | DescribedConsumer) -> dict[str, Any]:
    return {
        "member_id": one.member_id,
        "instance_id": one.instance_id,
        "client_id": one.client_id,
        "client_host": one.client_host.removeprefix("/"),
    }


def _assigned(assignment: bytes) -> list[dict[str, Any]] | None:
    """What a classic member was told, if that can be read."""
    if not assignment:
        return []
    try:
        partitions = read_assignment(assignment).partitions
    except CorruptMessage:
        return None
    return [{"topic": topic, "partitions": some} for topic, some in sorted(partitions.items())]


def _named(subject: Subject, partitions: TopicIdPartitions) -> list[dict[str, Any]]:
    names = subject.metadata.image.topic_names
    return [
        {"topic": names.get(topic_id, str(UUID(bytes=topic_id))), "partitions": some}
        for topic_id, some in partitions.items()
    ]


async def offsets(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    group_id = request.path_params["group"]
    machine, _ = _machine_of(subject, group_id)
    if group_id not in machine.group_ids():
        raise not_found(f"there is no group {group_id!r}")
    found = machine.offsets.fetch(group_id, None, require_stable=False)
    rows = [one for one in found if after is None or _key(one) > after]
    return await page(subject.clocks, "offsets", sorted(rows, key=_key), limit, lambda one: _offset(subject, one), _key)


def _key(one: FetchedOffset) -> str:
    return f"{one.topic}-{one.partition:06}"


def _offset(subject: Subject, one: FetchedOffset) -> dict[str, Any]:
    partition = subject.partitions.find(one.topic, one.partition)
    end = None if partition is None else partition.high_watermark
    return {
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "metadata": one.metadata,
        "high_watermark": end,
        "lag": None if end is None else max(end - one.offset, 0),
    }


def _machine_of(subject: Subject, group_id: str) -> tuple[GroupShard, GroupShardOnLog]:
    try:
        shard = subject.groups.shard_of(group_id)
        return shard.look(lambda machine: machine), shard
    except CoordinatorLoadInProgress as error:
        raise Refused(503, "loading", str(error)) from None
    except NotCoordinator as error:
        raise not_found(f"there is no group {group_id!r}: {error}") from None
