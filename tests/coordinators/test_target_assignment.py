"""What assignors are given, and what of the topics makes a group assign anew."""

from collections.abc import Mapping

from lamina.coordinators.assignors import MemberSubscription
from lamina.coordinators.consumer_member import NO_SUBSCRIPTION, ConsumerMember
from lamina.coordinators.records.group_records import RegexValue, TopicIdPartitions
from lamina.coordinators.target_assignment import compute_target, known_topics, metadata_hash, preferred_assignor
from lamina.image.image import Image
from lamina.image.topic import Topic, new_partition


def topic(name: str, count: int, *, topic_id: bytes | None = None, is_being_deleted: bool = False) -> Topic:
    partitions = tuple(new_partition((0,)) for _ in range(count))
    return Topic(name, topic_id or name.encode().ljust(16), partitions, is_being_deleted)


A, B = topic("a", 2), topic("b", 1)


def member(name: str, *topics: str, regex: str | None = None, assignor: str | None = None) -> ConsumerMember:
    subscription = NO_SUBSCRIPTION._replace(
        topics=topics, regex=regex, assignor=assignor, instance_id=f"i-{name}", rack_id="r"
    )
    return ConsumerMember(name, subscription)


def test_an_assignor_is_given_topic_ids_racks_and_the_target_so_far() -> None:
    given: list[object] = []

    def assign(
        members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
    ) -> Mapping[str, TopicIdPartitions]:
        given.append((members, partition_counts))
        return {"m": {A.id: (1, 0), B.id: ()}}

    members = {"m": member("m", "a", "gone"), "n": member("n", regex="b"), "o": member("o", "b", regex="unresolved")}
    target = compute_target(members, {"m": {A.id: (0,)}}, {"b": RegexValue(("b",), 1, 1)}, {"a": A, "b": B}, assign)
    assert given == [
        (
            {
                "m": MemberSubscription(frozenset({A.id}), "i-m", "r", {A.id: (0,)}),
                "n": MemberSubscription(frozenset({B.id}), "i-n", "r", {}),
                "o": MemberSubscription(frozenset({B.id}), "i-o", "r", {}),
            },
            {A.id: 2, B.id: 1},
        )
    ]
    assert target == {"m": {A.id: (0, 1)}, "n": {}, "o": {}}, "in one form, with one for every member"


def test_the_most_wanted_assignor_wins_and_the_first_if_none_or_several_do() -> None:
    offered = ("uniform", "range")
    assert preferred_assignor([], offered) == "uniform"
    assert preferred_assignor([member("m", assignor="range"), member("n")], offered) == "range"
    assert preferred_assignor([member("m", assignor="range"), member("n", assignor="uniform")], offered) == "uniform"
    assert preferred_assignor([member("m", assignor="not offered any more")], offered) == "uniform"


def test_the_hash_changes_with_names_ids_and_sizes_only() -> None:
    first = metadata_hash({"a": A, "b": B})
    assert first == metadata_hash({"b": B, "a": A})
    others = [
        {"a": A},
        {"a": topic("a", 3), "b": B},
        {"a": topic("a", 2, topic_id=b"x" * 16), "b": B},
        {"a": A, "c": topic("c", 1, topic_id=B.id)},
    ]
    assert len({first, *map(metadata_hash, others)}) == 5
    assert metadata_hash({}) == 0
    assert -(2**63) <= first < 2**63


def test_topics_that_are_being_deleted_are_not_known() -> None:
    image = Image("cluster", topics={"a": A, "b": topic("b", 1, is_being_deleted=True)})
    assert known_topics(("a", "b", "c"), image) == {"a": A}
