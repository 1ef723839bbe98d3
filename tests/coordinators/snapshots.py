"""Everything that a machine knows, durable or not, as a value: to see that a refused decision has changed nothing."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from lamina.image.image import Image
from lamina.image.topic import Topic


def snapshot(value: Any) -> Any:
    if isinstance(value, Image | Topic):
        return id(value)
    if isinstance(value, Mapping):
        return {key: snapshot(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, list | tuple):
        return tuple(snapshot(one) for one in value)
    if type(value).__module__.startswith("lamina.coordinators") and not isinstance(value, Enum):
        names = value.__slots__ if hasattr(value, "__slots__") else vars(value)
        # What is worked out when it is first asked for is no knowledge of its own.
        return {name: snapshot(getattr(value, name)) for name in names if name != "_subscribed_names"}
    return None if callable(value) else value
