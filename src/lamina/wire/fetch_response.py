"""Fetch answers v4-18, written by hand, with holes where the records go.

Owns their layout. The answer is a list of pieces to send in order: byte pieces, and the objects that the
caller gave as records. Such an object only has to know its length; a file range goes to `sendfile` and its
bytes never pass through here. Must not know files, sessions or partitions.
"""

from collections.abc import Sequence, Sized
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from lamina.wire.api_keys import FETCH
from lamina.wire.encoder import uuid_bytes
from lamina.wire.fetch_request import FIRST_FLEXIBLE, FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS
from lamina.wire.headers import start_response
from lamina.wire.leaders import CurrentLeader, NodeEndpoint, current_leader_field, write_endpoint_tags
from lamina.wire.primitives import write_compact_string, write_string, write_uvarint

INLINE_BYTES: Final = 4096
"""Records in memory up to this size are copied into the piece around them: cheaper than a piece of their
own."""

FIRST_WITH_LOG_START = 5
FIRST_WITH_PREFERRED_REPLICA = 11
FIRST_WITH_NODE_ENDPOINTS = 16

_DIVERGING_EPOCH_TAG = 0
_CURRENT_LEADER_TAG = 1

_pack_throttle = Struct(">i").pack
_pack_session = Struct(">ihi").pack
_pack_int32 = Struct(">i").pack
_pack_size = Struct(">i").pack_into
_pack_v4 = Struct(">ihqq").pack
_pack_offsets = Struct(">ihqqq").pack
_pack_plain = Struct(">ihqqqBi").pack
_pack_aborted = Struct(">qqx").pack
_pack_legacy_aborted = Struct(">qq").pack
_pack_diverging_epoch = Struct(">BBiqx").pack
_DIVERGING_EPOCH_BYTES = 13


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class DivergingEpoch(NamedTuple):
    """Where a follower's log and the leader's part: the largest common epoch and its end (KIP-595)."""

    epoch: int
    end_offset: int


class PartitionFetched(NamedTuple):
    """The answer for one partition. -1 stands for "none"."""

    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Sized | None = b""
    """Bytes, or anything with a length that the caller will send in this place."""
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    preferred_read_replica: int = -1
    diverging_epoch: DivergingEpoch | None = None
    current_leader: CurrentLeader | None = None


class TopicFetched(NamedTuple):
    """A topic by its name (up to v12) or by its id (from v13)."""

    name: str | None
    topic_id: UUID | None
    partitions: Sequence[PartitionFetched]


def encode_fetch_response(
    api_version: int,
    correlation_id: int,
    topics: Sequence[TopicFetched],
    throttle_time_ms: int,
    *,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Sized]:
    """The pieces of the frame that answers a Fetch request. What a version cannot carry is left out."""
    out = start_response(FETCH, api_version, correlation_id)
    pieces: list[Sized] = [out]
    if api_version >= FIRST_WITH_SESSIONS:
        out += _pack_session(throttle_time_ms, error_code, session_id)
    else:
        out += _pack_throttle(throttle_time_ms)
    if api_version >= FIRST_FLEXIBLE:
        out = _write_topics(pieces, out, topics, with_ids=api_version >= FIRST_WITH_TOPIC_IDS)
        write_endpoint_tags(out, node_endpoints if api_version >= FIRST_WITH_NODE_ENDPOINTS else ())
    else:
        _write_legacy_topics(pieces, out, topics, api_version)
    head = pieces[0]
    assert isinstance(head, bytearray)
    _pack_size(head, 0, sum(map(len, pieces)) - 4)
    return pieces


def _write_topics(pieces: list[Sized], out: bytearray, topics: Sequence[TopicFetched], *, with_ids: bool) -> bytearray:
    """Returns the piece to go on with."""
    write_uvarint(out, len(topics) + 1)
    for name, topic_id, partitions in topics:
        if with_ids:
            out += uuid_bytes(topic_id)
        else:
            write_compact_string(out, name)
        write_uvarint(out, len(partitions) + 1)
        for partition in partitions:
            out = _write_partition(pieces, out, partition)
        out.append(0)
    return out


def _write_partition(pieces: list[Sized], out: bytearray, partition: PartitionFetched) -> bytearray:
    """Returns the piece to go on with."""
    index, error_code, high_watermark, stable, start, records, aborted, preferred, diverging, leader = partition
    if aborted is None:
        out += _pack_plain(index, error_code, high_watermark, stable, start, 0, preferred)
    else:
        out += _pack_offsets(index, error_code, high_watermark, stable, start)
        write_uvarint(out, len(aborted) + 1)
        for producer_id, first_offset in aborted:
            out += _pack_aborted(producer_id, first_offset)
        out += _pack_int32(preferred)
    if records is None:
        out.append(0)
    else:
        write_uvarint(out, len(records) + 1)
        out = _put_records(pieces, out, records)
    if diverging is None and leader is None:
        out.append(0)
    else:
        _write_tags(out, diverging, leader)
    return out


def _write_tags(out: bytearray, diverging: DivergingEpoch | None, leader: CurrentLeader | None) -> None:
    out.append((diverging is not None) + (leader is not None))
    if diverging is not None:
        out += _pack_diverging_epoch(
            _DIVERGING_EPOCH_TAG, _DIVERGING_EPOCH_BYTES, diverging.epoch, diverging.end_offset
        )
    if leader is not None:
        out += current_leader_field(_CURRENT_LEADER_TAG, leader)


def _write_legacy_topics(pieces: list[Sized], out: bytearray, topics: Sequence[TopicFetched], api_version: int) -> None:
    out += _pack_int32(len(topics))
    for name, _, partitions in topics:
        write_string(out, name)
        out += _pack_int32(len(partitions))
        for partition in partitions:
            _write_legacy_head(out, partition, api_version)
            records = partition.records
            if records is None:
                out += _pack_int32(-1)
            else:
                out += _pack_int32(len(records))
                out = _put_records(pieces, out, records)
    if not out:
        pieces.pop()


def _write_legacy_head(out: bytearray, partition: PartitionFetched, api_version: int) -> None:
    """Everything before the records."""
    index, error_code, high_watermark, last_stable, log_start, _, aborted, preferred, _, _ = partition
    if api_version < FIRST_WITH_LOG_START:
        out += _pack_v4(index, error_code, high_watermark, last_stable)
    else:
        out += _pack_offsets(index, error_code, high_watermark, last_stable, log_start)
    out += _pack_int32(-1 if aborted is None else len(aborted))
    for producer_id, first_offset in aborted or ():
        out += _pack_legacy_aborted(producer_id, first_offset)
    if api_version >= FIRST_WITH_PREFERRED_REPLICA:
        out += _pack_int32(preferred)


def _put_records(pieces: list[Sized], out: bytearray, records: Sized) -> bytearray:
    """Copies small records into the current piece, or makes a hole and starts the next piece."""
    if isinstance(records, (bytes, bytearray, memoryview)) and len(records) <= INLINE_BYTES:
        out += records
        return out
    if len(records) == 0:
        return out
    following = bytearray()
    pieces.append(records)
    pieces.append(following)
    return following
