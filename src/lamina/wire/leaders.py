"""Who leads now, in the tagged fields of Produce and Fetch answers (KIP-951).

A client that asked the wrong broker is told the right one and saves a Metadata round trip. Owns the layout of
these two tagged fields, which both answers share. Must not know when they are sent.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from lamina.wire.primitives import write_compact_string, write_uvarint

_pack_leader = Struct(">BBiix").pack
_pack_int32 = Struct(">i").pack
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
