"""How a deleted topic goes: step by step, as brokers report that they have nothing of it any more (R50).

Owns when it is gone. While a live broker still has some of it, its name is taken and it cannot grow. Brokers that are
away are not waited for: the image remembers its id for them, so that what they bring back is deleted and never taken
for a topic that has the name by then. Must not know directories.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lamina.image.changes import remove_topic
from lamina.image.image import Image
from lamina.image.topic import Topic


def deletion_reported(image: Image, broker_id: int, topic_ids: Iterable[bytes]) -> Image:
    """A broker has nothing of these topics any more."""
    holders: dict[bytes, tuple[int, ...]] = {}
    for topic_id in topic_ids:
        known = _known_holders(image, topic_id)
        if broker_id in known and not _holds_offline(image, broker_id, topic_id):
            holders[topic_id] = tuple(holder for holder in known if holder != broker_id)
    return finish_deletions(replace(image, deletions={**image.deletions, **holders})) if holders else image


def forget_holder(image: Image, broker_id: int) -> Image:
    """A broker does not come back: nobody waits for what it may have of deleted topics, nor remembers it."""
    going = [topic.id for topic in image.topics.values() if topic.is_being_deleted]
    holders = {
        topic_id: tuple(holder for holder in known if holder != broker_id)
        for topic_id in (*image.deletions, *going)
        if broker_id in (known := _known_holders(image, topic_id))
    }
    return finish_deletions(replace(image, deletions={**image.deletions, **holders})) if holders else image


def finish_deletions(image: Image) -> Image:
    """Remove the topics of which no live broker has anything."""
    gone = [topic for topic in image.topics.values() if topic.is_being_deleted and not _is_any_awaited(image, topic)]
    if not gone and all(image.deletions.values()):
        return image
    holders = {**image.deletions, **{topic.id: _known_holders(image, topic.id) for topic in gone}}
    image = replace(image, deletions={topic_id: known for topic_id, known in holders.items() if known})
    return remove_topic(image, *(topic.name for topic in gone))


def _known_holders(image: Image, topic_id: bytes) -> tuple[int, ...]:
    """Who may have some of a deleted topic: all that kept it or have made a directory of it, until the first report."""
    known = image.deletions.get(topic_id)
    if known is not None:
        return known
    topic = _being_deleted(image, topic_id)
    if topic is None:
        return ()
    return tuple(sorted(set(_holders(topic))))


def _holders(topic: Topic) -> Iterator[int]:
    """Some more than once. Who was reassigned away while it was not there has its directories still."""
    for partition in topic.partitions:
        yield from partition.replicas
        yield from partition.made_on


def _being_deleted(image: Image, topic_id: bytes) -> Topic | None:
    name = image.topic_names.get(topic_id)
    return image.topics[name] if name is not None and image.topics[name].is_being_deleted else None


def _is_any_awaited(image: Image, topic: Topic) -> bool:
    """Found with the first of them: there may be ten thousand topics."""
    holders: Iterable[int] | None = image.deletions.get(topic.id)
    if holders is None:
        holders = _holders(topic)
    return any(_is_awaited(image, broker_id, topic) for broker_id in holders)


def _is_awaited(image: Image, broker_id: int, topic: Topic) -> bool:
    return broker_id in image.brokers and not _holds_offline(image, broker_id, topic.id)


def _holds_offline(image: Image, broker_id: int, topic_id: bytes) -> bool:
    """Whether a broker has some of a topic in failed directories: it cannot delete that before they are back."""
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.offline:
        return False
    topic = _being_deleted(image, topic_id)
    if topic is None:
        return False
    kept = [
        index
        for index, partition in enumerate(topic.partitions)
        if broker_id in partition.replicas or broker_id in partition.made_on
    ]
    return any((topic.name, index) in broker.offline for index in kept)
