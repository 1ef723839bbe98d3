"""What a consumer group's decisions go by beside the group itself: settings, topics, assignors.

Whoever runs groups makes one and hands it to every decision. Must not know any group.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lamina.coordinators.assignors.subscription import Assignor
from lamina.coordinators.group_settings import GroupSettings
from lamina.image.image import Image


@dataclass(frozen=True, slots=True)
class ConsumerContext:
    settings: GroupSettings
    image: Image
    image_version: int
    """Grows with every image that has a topic that the one before had not."""
    assignors: Mapping[str, Assignor]
