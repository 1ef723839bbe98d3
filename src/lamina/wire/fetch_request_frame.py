"""Fetch requests v15-18, written by hand: a follower sends one with every batch.

Owns the way back from what `fetch_request` reads, in the versions that brokers speak to each other; for the older ones
there is the schema. What only Kafka's brokers say, the cluster's id and what a follower knows of directories and of the
high watermark, is left out. Must not know sessions.
"""

from struct import Struct
from typing import Final

from lamina.wire.api_keys import FETCH
from lamina.wire.encoder import uuid_bytes
from lamina.wire.fetch_request import NO_REPLICA_ID, REPLICA_STATE_TAG, FetchRequest
from lamina.wire.headers import start_request
from lamina.wire.primitives import write_compact_string, write_uvarint

FIRST_BY_HAND: Final = 15
"""The first version with the replica in a tagged field."""

_pack_size = Struct(">i").pack_into
_pack_head = Struct(">iiibii").pack
_pack_partition = Struct(">iiqiqix").pack
_pack_replica_state = Struct(">BBBiqx").pack
_REPLICA_STATE_BYTES: Final = 13
_NO_REPLICA: Final = (NO_REPLICA_ID, -1)


def encode_fetch_request(
    request: FetchRequest, api_version: int, correlation_id: int, client_id: str | None
) -> bytearray:
    """The whole frame, from ``FIRST_BY_HAND`` on."""
    replica_id, replica_epoch, wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, *_ = request
    out = start_request(FETCH, api_version, correlation_id, client_id)
    out += _pack_head(wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
    write_uvarint(out, len(request.topics) + 1)
    for _, topic_id, partitions in request.topics:
        out += uuid_bytes(topic_id)
        write_uvarint(out, len(partitions) + 1)
        for partition in partitions:
            out += _pack_partition(*partition)
        out.append(0)
    write_uvarint(out, len(request.forgotten_topics) + 1)
    for _, topic_id, indexes in request.forgotten_topics:
        out += uuid_bytes(topic_id)
        write_uvarint(out, len(indexes) + 1)
        out += Struct(f">{len(indexes)}ix").pack(*indexes)
    write_compact_string(out, request.rack_id)
    if (replica_id, replica_epoch) == _NO_REPLICA:
        out.append(0)
    else:
        out += _pack_replica_state(1, REPLICA_STATE_TAG, _REPLICA_STATE_BYTES, replica_id, replica_epoch)
    _pack_size(out, 0, len(out) - 4)
    return out
