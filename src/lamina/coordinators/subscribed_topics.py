"""The topics that a consumer group subscribes to, as the metadata image knows them, and a hash of what matters.

When the hash changes, a topic was made, deleted or given partitions, and the group needs another assignment
(KIP-1101). The hash is Lamina's own: a group that another broker wrote is assigned anew once. Must not know members.
"""

import hashlib
from collections.abc import Iterable, Mapping

from lamina.image.image import Image
from lamina.image.topic import Topic

NOTHING_SUBSCRIBED_HASH = 0


def known_topics(names: Iterable[str], image: Image) -> dict[str, Topic]:
    """Those of the topics that exist, by name in order; one that is being deleted does not."""
    found = {}
    for name in sorted(names):
        topic = image.topics.get(name)
        if topic is not None and not topic.is_being_deleted:
            found[name] = topic
    return found


def metadata_hash(topics: Mapping[str, Topic]) -> int:
    """A signed 64-bit number that differs when any topic's name, id or number of partitions does."""
    if not topics:
        return NOTHING_SUBSCRIBED_HASH
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(topics):
        topic = topics[name]
        encoded = name.encode()
        digest.update(len(encoded).to_bytes(4, "big") + encoded + topic.id + len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)
