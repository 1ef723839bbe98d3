"""Which names a topic may have.

Owns Kafka's rules for topic names, and with them what may become the name of a directory. Must not know how a
topic is made.
"""

import re

from lamina.errors import InvalidRequest, InvalidTopic, TopicAlreadyExists
from lamina.image.image import Image

MAX_LENGTH = 249
"""With a dash and five digits a partition's directory fills the 255 bytes that a file system grants a name."""

RESERVED = "__cluster_metadata"
"""The log of Kafka's own controller, which lies among the partitions and is none."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    if not name:
        raise InvalidTopic("a topic's name must not be empty")
    if len(name) > MAX_LENGTH:
        raise InvalidTopic(f"the topic name {name[:20]}… has {len(name)} characters; {MAX_LENGTH} is the limit")
    if name in (".", ".."):
        raise InvalidTopic(f"{name!r} cannot be a topic's name")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(f"the topic name {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'")


def check_new_topic_name(image: Image, name: str) -> None:
    """A legal name that is free, and that no other name looks like where '.' and '_' are one, as in metrics."""
    if name == RESERVED:
        raise InvalidRequest(f"{name!r} cannot be a topic's name: Kafka's controller keeps its log under it")
    check_topic_name(name)
    topic = image.topics.get(name)
    if topic is not None:
        state = "is still being deleted" if topic.is_being_deleted else "already exists"
        raise TopicAlreadyExists(f"topic {name!r} {state}")
    if "." not in name and "_" not in name:
        return
    alike = _metric_name(name)
    for other in image.topics:
        # Only names of one length can be alike, and comparing lengths is cheap.
        if len(other) == len(name) and _metric_name(other) == alike:
            raise InvalidTopic(f"topic {name!r} collides with {other!r}: '.' and '_' are the same in metric names")


def _metric_name(name: str) -> str:
    return name.replace(".", "_")
