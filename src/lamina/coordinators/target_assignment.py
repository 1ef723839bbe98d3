"""The target assignment: which partitions each member of a consumer group is to get at the group's epoch.

Owns what it is computed from, which assignor computes it, and the hash that shows when it is out of date: it changes
when a subscribed topic was made, deleted or given partitions (KIP-1101). The hash is Lamina's own: a group that another
broker wrote is assigned again once. Must not know how members get there.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from lamina.coordinators.assignors import Assignor, MemberSubscription
from lamina.coordinators.consumer_member import ConsumerMember
from lamina.coordinators.partitions_by_topic import NO_PARTITIONS, normal
from lamina.coordinators.records.group_records import RegexValue, TopicIdPartitions
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
    hashed = bytearray()
    for name in sorted(topics):
        topic = topics[name]
        encoded = name.encode()
        hashed += len(encoded).to_bytes(4, "big") + encoded + topic.id + len(topic.partitions).to_bytes(4, "big")
    return int.from_bytes(hashlib.blake2b(hashed, digest_size=8).digest(), "big", signed=True)


def preferred_assignor(members: Iterable[ConsumerMember], offered: tuple[str, ...]) -> str:
    """The one that most members ask for, the earlier in the broker's list if several are; else the broker's first."""
    votes = Counter(member.subscription.assignor for member in members)
    return max(offered, key=lambda name: votes[name])


def compute_target(
    members: Mapping[str, ConsumerMember],
    assigned: Mapping[str, TopicIdPartitions],
    regexes: Mapping[str, RegexValue],
    topics: Mapping[str, Topic],
    assign: Assignor,
) -> dict[str, TopicIdPartitions]:
    """A target for every member. ``topics`` are those that exist, by name."""
    ids_of: dict[tuple[tuple[str, ...], str | None], frozenset[bytes]] = {}
    subscriptions = {}
    for member_id, member in members.items():
        key = (member.subscription.topics, member.regex)
        if key not in ids_of:
            resolved = regexes.get(member.regex) if member.regex is not None else None
            names = {*member.subscription.topics, *(resolved.topics if resolved is not None else ())}
            ids_of[key] = frozenset(topics[name].id for name in names if name in topics)
        subscriptions[member_id] = MemberSubscription(
            ids_of[key],
            member.subscription.instance_id,
            member.subscription.rack_id,
            assigned.get(member_id, NO_PARTITIONS),
        )
    partition_counts = {topic.id: len(topic.partitions) for topic in topics.values()}
    target = assign(subscriptions, partition_counts)
    return {member_id: normal(target.get(member_id, NO_PARTITIONS)) for member_id in members}
