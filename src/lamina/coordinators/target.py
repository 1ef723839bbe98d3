"""The target assignment: what each member of a consumer group shall have at the group's epoch.

Owns which assignor computes it and from what. An assignor is a function of the members' subscriptions and the
topics' sizes. Must not know how members get there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from lamina.coordinators.assignors import Assignor, MemberSubscription
from lamina.coordinators.consumer_member import ConsumerMember
from lamina.coordinators.records.group_records import RegexValue, TopicIdPartitions
from lamina.coordinators.topic_partitions import NO_PARTITIONS, normal
from lamina.image.topic import Topic


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
