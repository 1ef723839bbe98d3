"""LendSegments (key 10001, Lamina's own), version 0: a reader on a machine that sees the files reads them itself.

Behaviour: links the segments that hold ``[start_offset, end_offset)`` into a folder for this lease, and tells which
part of each file holds batches below the high watermark or, for committed reads, the last stable offset, with the
aborted transactions in it. At most 16 segments; ``end_offset`` of the response says how far they reach. Nothing to lend
is no error: then there are no segments and the id is zero. A reader with another boot id sees the disk and not this
machine's page cache, so it is lent only what was flushed. The lease ends `lease` after the last KeepLease (10002).
Only the leader lends. POLICY_VIOLATION where ``lamina.read.leases.max`` is reached or 0, the disk is nearly full, or
its file system has no links. Whoever may fetch from a partition may ask; who can open the files is the system's to say.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import LEASE_MS, LeaseRequest, ReadLease, ReadLeases
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, InconsistentTopicId, KafkaError
from lamina.wire.api_keys import LEND_SEGMENTS as API_KEY
from lamina.wire.building import response_shape

_INODE_BITS = 2**63 - 1
"""What of an inode's number fits a signed field."""


async def handle(partitions: Partitions, leases: ReadLeases, node_id: int, request: Request, message: Any) -> Any:
    partition = partitions.get(message.topic, message.partition)
    partition.check_served_here()
    partition.check_epoch(message.current_leader_epoch)
    if message.topic_id not in (None, partition.topic_id):
        raise InconsistentTopicId(f"{partition.log.name} is of topic id {partition.topic_id}, not {message.topic_id}")
    asked = LeaseRequest(
        message.start_offset,
        message.end_offset,
        message.isolation_level,
        message.boot_id,
        f"{request.client_id or 'a reader'} at {request.client.peer}",
        request.principal,
    )
    lease = await leases.lend(partition, asked)
    return _answer(request, node_id, partition.topic_id, lease)


def _answer(request: Request, node_id: int, topic_id: UUID, lease: ReadLease) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    segment_shape, aborted_shape = shape.of("segments"), shape.of("aborted_transactions")
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        node_id=node_id,
        lease_id=lease.id if lease.files else None,
        lease=timedelta(milliseconds=LEASE_MS),
        folder=lease.folder if lease.files else "",
        topic_id=topic_id,
        leader_epoch=lease.leader_epoch,
        end_offset=lease.end_offset,
        segments=tuple(
            segment_shape(
                base_offset=file.base_offset,
                start_position=file.start_position,
                end_position=file.end_position,
                inode=file.inode & _INODE_BITS,
            )
            for file in lease.files
        ),
        aborted_transactions=tuple(
            aborted_shape(
                producer_id=one.producer_id,
                first_offset=one.first_offset,
                last_offset=one.last_offset,
            )
            for one in lease.aborted
        ),
    )


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=error.code,
        error_message=str(error),
        node_id=-1,
        lease_id=None,
        lease=timedelta(0),
        folder="",
        topic_id=None,
        leader_epoch=-1,
        end_offset=-1,
        segments=(),
        aborted_transactions=(),
    )


API = Api(API_KEY, "LendSegments", range(1), error_response)
