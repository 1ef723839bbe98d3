"""Requests about committed offsets: whether a group lets them pass, and what is decided then.

A group is ``None`` where there is none: clients that use no group management may commit as well. Must not know which
groups there are, nor how their members agree.
"""

from lamina.coordinators.classic import ClassicGroup
from lamina.coordinators.consumer import ConsumerGroup
from lamina.coordinators.decision import Decision, Now, Producer, Waiter
from lamina.coordinators.group_requests import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TransactionalCommitRequest,
)
from lamina.coordinators.offsets import Offsets
from lamina.coordinators.records.group_records import GroupRecord
from lamina.errors import GroupIdNotFound, GroupSubscribedToTopic, IllegalGeneration, KafkaError

Group = ClassicGroup | ConsumerGroup
GroupDecision = Decision[GroupRecord]

_FIRST_COMMIT_WITH_NOT_FOUND = 9


def commit(
    offsets: Offsets,
    group: Group | None,
    request: OffsetCommitRequest,
    waiter: Waiter,
    now: Now,
    metadata_max_bytes: int,
) -> GroupDecision:
    decision = GroupDecision(is_refusable=True)
    if group is None:
        if request.generation_or_epoch >= 0:
            is_told = request.api_version >= _FIRST_COMMIT_WITH_NOT_FOUND
            error = GroupIdNotFound if is_told else IllegalGeneration
            raise error(f"there is no group {request.group_id}")
    elif isinstance(group, ConsumerGroup):
        group.check_commit(request.member_id, request.generation_or_epoch, False, request.api_version)
    else:
        member = group.check_commit(
            request.member_id, request.generation_or_epoch, request.instance_id, is_transactional=False
        )
        if member is not None:
            group.committed(member, now, decision)
    decision.records, errors = offsets.commit(
        request.group_id, request.partitions, now.wall_ms, metadata_max_bytes, request.retention_ms
    )
    decision.reply(waiter, errors)
    return decision


def commit_in_transaction(
    offsets: Offsets,
    group: Group | None,
    request: TransactionalCommitRequest,
    waiter: Waiter,
    now: Now,
    metadata_max_bytes: int,
) -> GroupDecision:
    """Offsets that count when the producer's transaction commits."""
    if group is None:
        if request.generation >= 0:
            raise IllegalGeneration(f"there is no group {request.group_id}")
    elif isinstance(group, ConsumerGroup):
        group.check_commit(request.member_id, request.generation, True, request.api_version)
    else:
        group.check_commit(request.member_id, request.generation, request.instance_id, is_transactional=True)
    decision = GroupDecision(producer=Producer(request.producer_id, request.producer_epoch), is_refusable=True)
    decision.records, errors = offsets.commit(request.group_id, request.partitions, now.wall_ms, metadata_max_bytes)
    decision.reply(waiter, errors)
    return decision


def fetch(offsets: Offsets, group: Group | None, request: OffsetFetchRequest, waiter: Waiter) -> GroupDecision:
    if isinstance(group, ConsumerGroup):
        group.check_fetch(request.member_id, request.member_epoch)
    decision = GroupDecision(is_refusable=True)
    found = offsets.fetch(request.group_id, request.partitions, require_stable=request.require_stable)
    decision.reply(waiter, found)
    return decision


def delete(offsets: Offsets, group: Group, request: OffsetDeleteRequest, waiter: Waiter) -> GroupDecision:
    if isinstance(group, ClassicGroup):
        group.check_offset_delete()
    errors: list[KafkaError | None] = [
        GroupSubscribedToTopic(f"members of {request.group_id} read {topic}") if group.is_subscribed_to(topic) else None
        for topic, _ in request.partitions
    ]
    gone = [key for key, error in zip(request.partitions, errors, strict=True) if error is None]
    decision = GroupDecision(offsets.delete(request.group_id, gone), is_atomic=False, is_refusable=True)
    decision.reply(waiter, errors)
    return decision
