"""What a consumer group's decisions go by beside the group itself: settings, topics, assignors, ways to read bytes.

Whoever runs groups makes one and hands it to every decision. Must not know any group.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lamina.coordinators.assignors.subscription import Assignor
from lamina.coordinators.embedded_protocol import EmbeddedProtocol
from lamina.coordinators.group_settings import GroupSettings
from lamina.image.image import Image


@dataclass(frozen=True, slots=True)
class ConsumerContext:
    settings: GroupSettings
    image: Image
    image_version: int
    """Grows with every image that has a topic that the one before had not."""
    assignors: Mapping[str, Assignor]
    check_regex: Callable[[str], object]
    """Raises InvalidRegularExpression."""
    embedded: EmbeddedProtocol
    """How members of the classic protocol write what they subscribe to and read what they are assigned."""
