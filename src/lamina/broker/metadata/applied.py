"""What this broker did when it applied a change, as far as the cluster's metadata has to be told of it.

Owns these facts and the image in which they stand. Must not know how they are told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lamina.image.changes import mark_made, remove_topic
from lamina.image.image import Image
from lamina.image.topic import Topic
from lamina.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What the cluster's metadata has to be told after a change was applied here."""

    made: Sequence[TopicPartition] = ()
    """Replicas that this broker has made: from now on a missing one is a loss."""
    lost: Sequence[TopicPartition] = ()
    """Replicas that this broker had made, and whose directories are gone."""
    deleted: Sequence[Topic] = ()
    """Topics that are out of service and off the disk, so that their names are free."""
    unknown: Sequence[str] = field(default_factory=list)
    """Partition directories that the metadata does not know."""
    deleted_before: Sequence[bytes] = ()
    """Ids of topics that were deleted while this broker was away, and of which it has nothing any more."""
    removed: Sequence[TopicPartition] = ()
    """Replicas that this broker kept before, and of which it has nothing any more."""
    left: Sequence[tuple[TopicPartition, bytes]] = ()
    """Replicas of deleted topics, with the topic's id, of which a failed directory may still have something."""

    def reported(self, image: Image, node_id: int) -> Image:
        """The image in which this stands."""
        if self.made:
            image = mark_made(image, node_id, self.made)
        return remove_topic(image, *(topic.name for topic in self.deleted)) if self.deleted else image
