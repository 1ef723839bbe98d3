"""The names of partition directories (formats.md §2.1), of the folders that cleaning makes in them, and of the one for
readers beside them.

Must not know what is in them.
"""

import re

PASS_FOLDER_PREFIX = ".lamina-pass-"
"""A folder inside a partition's directory in which a cleaning pass works; after a crash it means nothing."""

READING_FOLDER = ".lamina-reading"
"""A folder of a log directory in which readers outside the broker find what they are lent; after a restart it means
nothing."""

_MAX_NAME = 255
_DELETED = re.compile(r"^.+\.[0-9a-f]{32}-delete$")
_FUTURE = re.compile(r"^(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})\.[0-9a-f]{32}-future$")
_ASIDE = re.compile(r"^.+\.[0-9a-f]{32}-(delete|future|stray)$")
_PARTITION = re.compile(r"^(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})$")


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Topic and partition; ``None`` for a name that is no partition's: the partition is after the last dash."""
    found = _PARTITION.match(name)
    if found is None or _ASIDE.match(name):
        return None
    return found["topic"], int(found["partition"])


def deleted_directory(topic: str, partition: int, unique_hex: str) -> str:
    """The name of a directory that waits for its removal."""
    return _aside(topic, f"-{partition}.{unique_hex}-delete")


def future_directory(topic: str, partition: int, unique_hex: str) -> str:
    """The name of a directory in which a partition's log is copied from another log directory."""
    return f"{topic}-{partition}.{unique_hex}-future"


def may_have_future(topic: str, partition: int) -> bool:
    """Whether that name is legal: the topic is not shortened in it, for it says whose the log is."""
    return len(future_directory(topic, partition, "0" * 32)) <= _MAX_NAME


def parse_future_directory(name: str) -> tuple[str, int] | None:
    """Topic and partition; ``None`` for a name that is no future log's."""
    found = _FUTURE.match(name)
    return None if found is None else (found["topic"], int(found["partition"]))


def stray_directory(topic: str, partition: int, unique_hex: str) -> str:
    """The name of a directory that had a partition's name and was not that partition's."""
    return _aside(topic, f"-{partition}.{unique_hex}-stray")


def _aside(topic: str, suffix: str) -> str:
    """The topic is shortened so that the name stays legal."""
    return topic[: _MAX_NAME - len(suffix)] + suffix


def is_deleted_directory(name: str) -> bool:
    return _DELETED.match(name) is not None
