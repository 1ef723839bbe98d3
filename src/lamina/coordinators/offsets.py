"""The committed offsets of a shard's groups, those of open transactions, and when they expire.

Owns what is committed. Whether a member may commit is its group's business. Durable state changes only by
:meth:`Offsets.replay` and :meth:`Offsets.end_transaction`. Must not know groups.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from sys import intern
from typing import Any, NamedTuple

from lamina.coordinators.group_requests import CommittedPartition, FetchedOffset
from lamina.coordinators.records.group_records import GroupRecord, OffsetKey, OffsetValue
from lamina.errors import KafkaError, OffsetMetadataTooLarge, UnstableOffsetCommit
from lamina.topic_partition import TopicPartition

AT_A_TIME = 256
"""So many offsets are deleted in one turn of the loop: one takes a few microseconds."""
_STORED_MAX_BYTES = 2**15 - 1
"""No longer text fits into a record, whatever is allowed."""
_NOTHING: Mapping[TopicPartition, Any] = {}

_Stored = tuple[int, int, str, int, int | None, bytes | None]
"""An :class:`OffsetValue` as a plain tuple, which the garbage collector does not look through again and again: a
shard may hold millions, and each look would hold the loop up."""


class Expiry(NamedTuple):
    """How the offsets of a group grow old."""

    since_ms: int | None = None
    """They all count from here, when the group became empty; ``None``: each from its own commit."""
    kept_topics: frozenset[str] = frozenset()
    """Topics that are read: their offsets do not expire."""


class StoredOffset(NamedTuple):
    """An offset as it was at one time."""

    key: OffsetKey
    stored: _Stored | None
    """``None`` where only an open transaction writes it."""


class _Pending(NamedTuple):
    order: int
    """Later records have larger numbers."""
    value: OffsetValue | None
    """``None`` if something was committed since, which stays."""


class Offsets:
    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, _Stored]] = {}
        self._pending: dict[int, dict[OffsetKey, _Pending]] = {}
        """By the producer whose transaction is open."""
        self._pending_counts: dict[str, dict[TopicPartition, int]] = {}
        """By group: how many open transactions write an offset."""
        self._order = 0

    # Durable state

    def replay(self, key: OffsetKey, value: OffsetValue | None, producer_id: int | None) -> None:
        self._order += 1
        if value is None:
            self._remove(key)
        elif producer_id is None:
            self._put(key, value, self._order)
        else:
            pending = self._pending.setdefault(producer_id, {})
            if key not in pending:
                counts = self._pending_counts.setdefault(key.group_id, {})
                counts[key[1:]] = counts.get(key[1:], 0) + 1
            pending[key] = _Pending(self._order, value)

    def _put(self, key: OffsetKey, value: OffsetValue, order: int) -> None:
        """What was written last counts, whenever its transaction ends."""
        group_id, topic, partition = key
        group = self._committed.get(group_id)
        if group is None:
            group = self._committed[group_id] = {}
        place = (topic, partition)
        if place not in group:
            # One text for all partitions of all groups that read the topic.
            place = (intern(topic), partition)
        group[place] = (*value,)
        if key[1:] in self._pending_counts.get(group_id, _NOTHING):
            for pending in self._pending.values():
                if key in pending and pending[key].order < order:
                    pending[key] = _Pending(order, None)

    def _remove(self, key: OffsetKey) -> None:
        """A tombstone also takes what open transactions would commit."""
        group = self._committed.get(key.group_id)
        if group is not None:
            group.pop(key[1:], None)
            if not group:
                del self._committed[key.group_id]
        if key[1:] in self._pending_counts.get(key.group_id, _NOTHING):
            for pending in self._pending.values():
                if pending.pop(key, None) is not None:
                    self._end_pending(key)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        for key, (order, value) in self._pending.pop(producer_id, {}).items():
            self._end_pending(key)
            if is_committed and value is not None:
                self._put(key, value, order)

    def _end_pending(self, key: OffsetKey) -> None:
        counts = self._pending_counts[key.group_id]
        counts[key[1:]] -= 1
        if not counts[key[1:]]:
            del counts[key[1:]]
            if not counts:
                del self._pending_counts[key.group_id]

    # Deciding

    def commit(
        self,
        group_id: str,
        partitions: Iterable[CommittedPartition],
        now_ms: int,
        metadata_max_bytes: int,
        retention_ms: int | None = None,
    ) -> tuple[list[GroupRecord], list[KafkaError | None]]:
        """The records of a commit that its group allows, and what is wrong with each partition."""
        records: list[GroupRecord] = []
        errors: list[KafkaError | None] = []
        metadata_max_bytes = min(metadata_max_bytes, _STORED_MAX_BYTES)
        expire_ms = None if retention_ms is None else now_ms + retention_ms
        for topic, partition, offset, leader_epoch, metadata, topic_id, commit_ms in partitions:
            text = metadata or ""
            if len(text) > metadata_max_bytes or len(text.encode()) > metadata_max_bytes:
                errors.append(OffsetMetadataTooLarge(f"more than offset.metadata.max.bytes={metadata_max_bytes}"))
                continue
            value = OffsetValue(
                offset, leader_epoch, text, now_ms if commit_ms is None else commit_ms, expire_ms, topic_id
            )
            records.append(GroupRecord(OffsetKey(group_id, topic, partition), value))
            errors.append(None)
        return records, errors

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
    ) -> tuple[FetchedOffset, ...]:
        group = self._committed.get(group_id, _NOTHING)
        unstable = self._pending_counts.get(group_id, {}) if require_stable else {}
        wanted = (group.keys() | unstable.keys()) if partitions is None else partitions
        found = []
        for topic, partition in sorted(wanted) if partitions is None else wanted:
            stored = group.get((topic, partition))
            if (topic, partition) in unstable:
                error = UnstableOffsetCommit(f"a transaction that commits {topic}-{partition} is open")
                found.append(FetchedOffset(topic, partition, error=error))
            elif stored is None:
                found.append(FetchedOffset(topic, partition))
            else:
                offset, leader_epoch, metadata, *_ = stored
                found.append(FetchedOffset(topic, partition, offset, leader_epoch, metadata))
        return tuple(found)

    def delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[GroupRecord]:
        """Tombstones for those that are there, if only in an open transaction."""
        group, unstable = self._committed.get(group_id, _NOTHING), self._pending_counts.get(group_id, _NOTHING)
        return [
            GroupRecord(OffsetKey(group_id, topic, partition), None)
            for topic, partition in partitions
            if (topic, partition) in group or (topic, partition) in unstable
        ]

    def delete_all(self, group_id: str) -> tuple[list[GroupRecord], bool]:
        """Tombstones for all offsets of a group, at most ``AT_A_TIME``, and whether there are more."""
        known = self._committed.get(group_id, _NOTHING).keys() | self._pending_counts.get(group_id, _NOTHING).keys()
        return self.delete(group_id, islice(known, AT_A_TIME)), len(known) > AT_A_TIME

    def of_topics(self, topics: frozenset[str]) -> list[StoredOffset]:
        """Every offset in these topics, as it is now. All offsets are looked through, which may be many."""
        committed = [
            StoredOffset(OffsetKey(group_id, *place), stored)
            for group_id, places in self._committed.items()
            for place, stored in places.items()
            if place[0] in topics
        ]
        pending = [
            StoredOffset(OffsetKey(group_id, *place), None)
            for group_id, places in self._pending_counts.items()
            for place in places
            if place[0] in topics and place not in self._committed.get(group_id, _NOTHING)
        ]
        return [*committed, *pending]

    def delete_stored(self, found: Iterable[StoredOffset]) -> list[GroupRecord]:
        """Tombstones for those that are as they were: what was committed since is of another topic of the name."""
        return [
            GroupRecord(key, None)
            for key, stored in found
            if self._committed.get(key.group_id, _NOTHING).get(key[1:]) is stored
            and (stored is not None or key[1:] in self._pending_counts.get(key.group_id, _NOTHING))
        ]

    def expired(self, group_id: str, expiry: Expiry, now_ms: int, retention_ms: int) -> list[GroupRecord]:
        """Tombstones for what has grown old, at most ``AT_A_TIME``.

        An offset that an open transaction writes waits for its end.
        """
        unstable = self._pending_counts.get(group_id, {})
        gone = []
        for (topic, partition), stored in self._committed.get(group_id, _NOTHING).items():
            if topic in expiry.kept_topics or (topic, partition) in unstable:
                continue
            value = OffsetValue(*stored)
            if value.expire_timestamp_ms is not None:
                is_old = now_ms >= value.expire_timestamp_ms
            else:
                since_ms = value.commit_timestamp_ms if expiry.since_ms is None else expiry.since_ms
                is_old = now_ms - since_ms >= retention_ms
            if is_old:
                gone.append(GroupRecord(OffsetKey(group_id, topic, partition), None))
            if len(gone) == AT_A_TIME:
                break
        return gone

    # Looking

    def groups(self) -> list[str]:
        """Those that have an offset, committed or in an open transaction."""
        return [*self._committed, *(group_id for group_id in self._pending_counts if group_id not in self._committed)]

    def count(self, group_id: str) -> int:
        return len(self._committed.get(group_id, _NOTHING))

    def is_in_transaction(self, group_id: str) -> bool:
        return group_id in self._pending_counts

    def has_any(self, group_id: str) -> bool:
        return group_id in self._committed or group_id in self._pending_counts
