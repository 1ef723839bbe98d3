"""WriteTxnMarkers (key 27), versions 1-2.

Behaviour: a marker is written into each partition that this broker leads, as with acks=all, which ends the producer's
transaction there whatever its coordinator knows: coordinators on other brokers ask for it, and operators who abort a
transaction that hangs. An older producer epoch is INVALID_PRODUCER_EPOCH, an older coordinator epoch
TRANSACTION_COORDINATOR_FENCED; a partition without an open transaction gets its marker all the same. One that is not
here is UNKNOWN_TOPIC_OR_PARTITION, one that is led elsewhere NOT_LEADER_OR_FOLLOWER; too few in-sync replicas are
NOT_ENOUGH_REPLICAS, and a commit that takes longer than request.timeout.ms is REQUEST_TIMED_OUT (R75). Many markers are
written in turns of the loop.
Version notes: v2 says the transaction version: from 2 on, a marker that comes late ends no later transaction.
"""

from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.commits import all_committed
from lamina.broker.partitions.partition import CommitPoint, Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.transaction_requests import CLASSIC
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.settings.network import REQUEST_TIMEOUT_MS
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import WRITE_TXN_MARKERS as API_KEY
from lamina.wire.building import response_shape

Errors = dict[TopicPartition, ErrorCode]


async def handle(metadata: Metadata, partitions: Partitions, clocks: Clocks, request: Request, message: Any) -> Any:
    results = []
    uncommitted: list[tuple[Partition, CommitPoint]] = []
    turns = Turns(clocks)
    for marker in message.markers:
        errors: Errors = {}
        for topic in marker.topics:
            for index in topic.partition_indexes:
                errors[topic.name, index] = _write(partitions, clocks, marker, topic.name, index, uncommitted)
                await turns.step()
        results.append(errors)
        await turns.step()
    failed = await all_committed(uncommitted, clocks, timeout_ms=metadata.settings[REQUEST_TIMEOUT_MS])
    if failed:
        for errors in results:
            errors |= {key: failed[key].code for key in errors if key in failed}
            await turns.step()
    return await _response(request, message, results, turns)


def _write(
    partitions: Partitions,
    clocks: Clocks,
    marker: Any,
    topic: str,
    index: int,
    uncommitted: list[tuple[Partition, CommitPoint]],
) -> ErrorCode:
    try:
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise InvalidRequest("a marker belongs to a producer: its id and epoch are 0 or more")
        partition = partitions.get(topic, index)
        partition.check_in_sync()
        partition.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            is_commit=marker.transaction_result,
            transaction_version=getattr(marker, "transaction_version", CLASSIC),
            now_ms=clocks.now_ms(),
        )
    except KafkaError as error:
        return error.code
    except Exception as error:
        partitions.failed(topic, index, error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    if not partition.is_committed():
        uncommitted.append((partition, partition.commit_point()))
    return ErrorCode.NONE


async def _response(request: Request, message: Any, results: list[Errors], turns: Turns) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    marker_shape = shape.of("markers")
    topic_shape = marker_shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    markers = []
    for marker, errors in zip(message.markers, results, strict=True):
        topics = []
        for topic in marker.topics:
            partitions = []
            for index in topic.partition_indexes:
                partitions.append(partition_shape(partition_index=index, error_code=errors[topic.name, index]))
                await turns.step()
            topics.append(topic_shape(name=topic.name, partitions=tuple(partitions)))
        markers.append(marker_shape(producer_id=marker.producer_id, topics=tuple(topics)))
        await turns.step()
    return shape(markers=tuple(markers))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    marker_shape = shape.of("markers")
    topic_shape = marker_shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        markers=tuple(
            marker_shape(
                producer_id=marker.producer_id,
                topics=tuple(
                    topic_shape(
                        name=topic.name,
                        partitions=tuple(
                            partition_shape(partition_index=index, error_code=error.code)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in message.markers
        )
    )


API = Api(API_KEY, "WriteTxnMarkers", range(1, 3), error_response, is_for_brokers=True)
