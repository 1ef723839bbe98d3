"""``/v1/topics``: topics, their partitions, and how far each partition reaches."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import bad_request, json_answer, not_found, page, whole_number, window
from lamina.broker.admin.subject import Subject
from lamina.broker.partitions.partition import Partition
from lamina.broker.turns import in_turns
from lamina.errors import NotLeaderOrFollower, StorageError, UnknownTopicOrPartition
from lamina.image.image import ConfigResource, ResourceType
from lamina.image.topic import Topic
from lamina.log.identity import format_id


async def topics(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    known = subject.metadata.image.topics
    names = sorted(
        name for name, topic in known.items() if not topic.is_being_deleted and (after is None or name > after)
    )
    return await page(subject.clocks, "topics", names, limit, lambda name: _summary(known[name]), str)


def _summary(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": format_id(topic.id),
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas),
    }


async def topic(subject: Subject, request: Request) -> Response:
    found = find_topic(subject, request)
    sizes = [_size(subject, found, index) async for index in in_turns(range(len(found.partitions)), subject.clocks)]
    return json_answer(
        {
            **_summary(found),
            "size_bytes": sum(size for size in sizes if size is not None),
            "offline_partitions": len(subject.partitions.offline(found.name)),
            "configs": dict(subject.metadata.image.configs_of(ConfigResource(ResourceType.TOPIC, found.name))),
        }
    )


def _size(subject: Subject, topic: Topic, index: int) -> int | None:
    partition = subject.partitions.find(topic.name, index)
    return None if partition is None or partition.log.failure is not None else partition.log.size_bytes()


async def partitions(subject: Subject, request: Request) -> Response:
    limit, after = window(request)
    found = find_topic(subject, request)
    first = 0 if after is None else whole_number(after, "after") + 1
    indexes = range(min(first, len(found.partitions)), len(found.partitions))
    return await page(subject.clocks, "partitions", indexes, limit, lambda index: _row(subject, found, index), int)


async def partition(subject: Subject, request: Request) -> Response:
    found = find_topic(subject, request)
    return json_answer(_row(subject, found, find_index(found, request)))


def _row(subject: Subject, topic: Topic, index: int) -> dict[str, Any]:
    """What the metadata says, and, of a partition that is here and online, what its log says."""
    known = topic.partitions[index]
    served, failure = _served(subject, topic.name, index)
    directory = subject.directories.of.get((topic.name, index))
    return {
        "topic": topic.name,
        "partition": index,
        "leader": known.leader,
        "leader_epoch": known.leader_epoch,
        "replicas": known.replicas,
        "isr": known.isr,
        "adding_replicas": known.adding,
        "removing_replicas": known.removing,
        "is_online": served is not None,
        "failure": failure,
        "log_dir": None if directory is None else directory.path,
        "log_start_offset": served and served.log.log_start_offset,
        "log_end_offset": served and served.log.log_end_offset,
        "high_watermark": served and served.high_watermark,
        "last_stable_offset": served and served.last_stable_offset,
        "recovery_point": served and served.log.recovery_point,
        "segments": served and len(served.log.segments),
        "size_bytes": served and served.log.size_bytes(),
    }


def _served(subject: Subject, topic: str, index: int) -> tuple[Partition | None, str | None]:
    """The partition if it can be used, else why not."""
    try:
        found = subject.partitions.get(topic, index)
        found.check_online()
    except (StorageError, NotLeaderOrFollower, UnknownTopicOrPartition) as error:
        return None, str(error)
    return found, None


def find_topic(subject: Subject, request: Request) -> Topic:
    try:
        return subject.metadata.image.topic(request.path_params["topic"])
    except UnknownTopicOrPartition as error:
        raise not_found(str(error)) from None


def find_index(topic: Topic, request: Request) -> int:
    text = request.path_params["partition"]
    if not text.isdecimal():
        raise bad_request(f"a partition is a whole number, not {text!r}")
    index = whole_number(text, "a partition")
    if index >= len(topic.partitions):
        raise not_found(f"topic {topic.name!r} has {len(topic.partitions)} partitions and no {index}")
    return index


def find_partition(subject: Subject, request: Request) -> Partition:
    """The partition that the path names, if it can be read: a lost one is an error of the disk."""
    topic = find_topic(subject, request)
    try:
        found = subject.partitions.get(topic.name, find_index(topic, request))
    except NotLeaderOrFollower as error:
        raise not_found(str(error)) from None
    found.check_online()
    return found
