"""AlterPartitionReassignments (key 45), versions 0-1.

Behaviour: partitions get other replicas, or back those that they had where a list is null (R51, R52, R69). All that can
be done begins in one change; the answer does not wait until it is complete. Brokers that are added must be there:
INVALID_REPLICA_ASSIGNMENT. Nothing to cancel is NO_REASSIGNMENT_IN_PROGRESS. A partition that is named twice gets
INVALID_REQUEST.
Many partitions are worked on in turns of the loop.
Version notes: from v1 the client may rule out that the number of replicas changes: INVALID_REPLICATION_FACTOR.
Not done: the timeout is not looked at.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.topic_creation import AT_ONCE
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns, in_turns
from lamina.clocks import Clocks
from lamina.controller.reassignment import cancel, reassign
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.changes import set_partitions
from lamina.image.image import Image
from lamina.image.topic import Partition
from lamina.topic_partition import TopicPartition, name_of
from lamina.wire.api_keys import ALTER_PARTITION_REASSIGNMENTS as API_KEY
from lamina.wire.building import response_shape


class Wanted(NamedTuple):
    key: TopicPartition
    replicas: tuple[int, ...] | None
    """``None`` for those from before."""


async def handle(metadata: Metadata, threads: Threads, clocks: Clocks, request: Request, message: Any) -> Any:
    turns = Turns(clocks)
    every: list[Wanted] = []
    named = Counter[TopicPartition]()
    for wanted in _wanted(message):
        every.append(wanted)
        named[wanted.key] += 1
        await turns.step()
    may_change_factor = getattr(message, "allow_replication_factor_change", True)
    errors: dict[TopicPartition, KafkaError] = {}

    async def change(image: Image) -> Image:
        errors.clear()
        changed: dict[TopicPartition, Partition] = {}
        async for wanted in in_turns(every, clocks):
            try:
                if named[wanted.key] > 1:
                    raise InvalidRequest(f"{name_of(wanted.key)} is named more than once")
                changed[wanted.key] = _reassigned(metadata, image, wanted, may_change_factor=may_change_factor)
            except KafkaError as error:
                errors[wanted.key] = error.without_frames()
        if len(changed) > AT_ONCE:
            return await threads.compute(partial(set_partitions, image, changed))
        return set_partitions(image, changed) if changed else image

    await metadata.change(change)
    results = _Results(request)
    for topic in message.topics:
        for partition in topic.partitions:
            results.add(partition.partition_index, errors.get((topic.name, partition.partition_index)))
            await turns.step()
        results.end_topic(topic.name)
        await turns.step()
    return results.response(message)


def _wanted(message: Any) -> Iterator[Wanted]:
    for topic in message.topics:
        for partition in topic.partitions:
            yield Wanted((topic.name, partition.partition_index), partition.replicas)


def _reassigned(metadata: Metadata, image: Image, wanted: Wanted, *, may_change_factor: bool) -> Partition:
    if wanted.replicas is None:
        return cancel(image, wanted.key, metadata.facts)
    return reassign(image, wanted.key, wanted.replicas, metadata.facts, may_change_factor=may_change_factor)


class _Results:
    """The response as it grows, one partition after another, topic by topic."""

    def __init__(self, request: Request) -> None:
        self._shape = response_shape(API_KEY, request.api_version)
        self._topic = self._shape.of("responses")
        self._partition = self._topic.of("partitions")
        self._partitions: list[Any] = []
        self._topics: list[Any] = []

    def add(self, index: int, error: KafkaError | None) -> None:
        self._partitions.append(self._partition(partition_index=index, **_told(error)))

    def end_topic(self, name: str) -> None:
        """It has the partitions that were added since the topic before it."""
        self._topics.append(self._topic(name=name, partitions=tuple(self._partitions)))
        self._partitions = []

    def response(self, message: Any, whole: KafkaError | None = None) -> Any:
        return self._shape(
            allow_replication_factor_change=getattr(message, "allow_replication_factor_change", True),
            responses=tuple(self._topics),
            **_told(whole),
        )


def _told(error: KafkaError | None) -> dict[str, Any]:
    if error is None:
        return {"error_code": ErrorCode.NONE, "error_message": None}
    return {"error_code": error.code, "error_message": str(error)}


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    results = _Results(request)
    for topic in message.topics:
        for partition in topic.partitions:
            results.add(partition.partition_index, error)
        results.end_topic(topic.name)
    return results.response(message, error)


API = Api(API_KEY, "AlterPartitionReassignments", range(2), error_response, is_for_controller=True)
