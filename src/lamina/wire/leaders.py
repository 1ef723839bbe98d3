"""Who leads now, in the tagged fields of Produce and Fetch answers (KIP-951).

A client that asked the wrong broker is told the right one and saves a Metadata round trip. Owns the layout of
these two tagged fields, which both answers share. Must not know when they are sent.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from lamina.wire.primitives import (
    present,
    read_compact_string,
    read_uvarint,
    skip_tags,
    spend,
    write_compact_string,
    write_uvarint,
)

_pack_leader = Struct(">BBiix").pack
_pack_int32 = Struct(">i").pack
_unpack_int32 = Struct(">i").unpack_from
_unpack_leader = Struct(">ii").unpack_from
_LEADER_BYTES = 9
"""Leader id, epoch and the leader's own empty tag section."""

_NODE_ENDPOINTS_TAG = 0


class CurrentLeader(NamedTuple):
    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


def current_leader_field(tag: int, leader: CurrentLeader) -> bytes:
    """One tagged field: tag, size and value."""
    return _pack_leader(tag, _LEADER_BYTES, leader.leader_id, leader.leader_epoch)


def write_endpoint_tags(out: bytearray, endpoints: Sequence[NodeEndpoint]) -> None:
    """The tag section at the end of either answer, with or without endpoints."""
    if not endpoints:
        out.append(0)
        return
    value = bytearray()
    write_uvarint(value, len(endpoints) + 1)
    for endpoint in endpoints:
        value += _pack_int32(endpoint.node_id)
        write_compact_string(value, endpoint.host)
        value += _pack_int32(endpoint.port)
        write_compact_string(value, endpoint.rack)
        value.append(0)
    out.append(1)
    out.append(_NODE_ENDPOINTS_TAG)
    write_uvarint(out, len(value))
    out += value


def parse_current_leader(value: bytes) -> CurrentLeader | None:
    """The value of the tagged field; ``None`` where the broker knows of no leader."""
    leader = CurrentLeader(*_unpack_leader(value))
    return leader if leader.leader_id >= 0 else None


def parse_node_endpoints(value: bytes, budget: list[int]) -> tuple[NodeEndpoint, ...]:
    """The value of the tagged field. Raises one of `UNREADABLE`."""
    count, at = read_uvarint(value, 0)
    endpoints = []
    for _ in range(spend(count - 1, budget)):
        (node_id,) = _unpack_int32(value, at)
        host, at = read_compact_string(value, at + 4)
        (port,) = _unpack_int32(value, at)
        rack, at = read_compact_string(value, at + 4)
        at = skip_tags(value, at, budget)
        endpoints.append(NodeEndpoint(node_id, present(host), port, rack))
    if at > len(value):
        raise IndexError
    return tuple(endpoints)
