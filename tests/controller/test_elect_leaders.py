"""Elections that are asked for (R68), and which leaders are not where they should be (R49)."""

from dataclasses import replace

import pytest

from lamina.controller.brokers import brokers_gone, replicas_offline
from lamina.controller.elect_leaders import elect_preferred, elect_unclean, imbalanced_partitions
from lamina.controller.election import NO_FACTS, LogEnd
from lamina.errors import ErrorCode, KafkaError
from lamina.image.changes import mark_deleted
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER, Partition, new_partition
from tests.controller.cluster import KEY, TOPIC, cluster, partition, state


def refusal_of_preferred(image: Image) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        elect_preferred(image, KEY)
    return caught.value.code


def refusal_of_unclean(image: Image) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        elect_unclean(image, KEY, NO_FACTS)
    return caught.value.code


def test_the_preferred_replica_leads_again_and_nobody_leaves_r45() -> None:
    assert state(elect_preferred(cluster(partition(2, (2, 1))), KEY)) == (1, 6, (2, 1))


@pytest.mark.parametrize(
    ("old", "code"),
    [
        (partition(1, (1, 2)), ErrorCode.ELECTION_NOT_NEEDED),
        (partition(2, (2, 3)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (partition(NO_LEADER, (1,)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ],
)
def test_a_preferred_election_that_cannot_be_r68(old: Partition, code: ErrorCode) -> None:
    image = cluster(old) if old.leader != NO_LEADER else cluster(old, brokers=[2, 3])
    assert refusal_of_preferred(image) == code


def test_a_preferred_replica_must_be_online_r68() -> None:
    image = replicas_offline(cluster(partition(2, (2,))), 1, frozenset([KEY]), frozenset(), NO_FACTS)
    assert refusal_of_preferred(image) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert refusal_of_preferred(mark_deleted(image, TOPIC)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unclean_election_that_is_asked_for_r68() -> None:
    image = brokers_gone(cluster(partition(1, (1,))), [1], NO_FACTS)
    after = elect_unclean(image, KEY, NO_FACTS)
    assert state(after) == (2, 7, (2,))
    assert after.topics[TOPIC].partitions[0].is_recovering


def test_an_unclean_election_that_cannot_be_r68() -> None:
    image = cluster(partition(1, (1,)))
    assert refusal_of_unclean(image) == ErrorCode.ELECTION_NOT_NEEDED
    nobody = brokers_gone(image, [1, 2, 3], NO_FACTS)
    assert refusal_of_unclean(nobody) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    never_begun = cluster(replace(new_partition((1, 2), online=()), partition_epoch=0), brokers=[])
    assert refusal_of_unclean(never_begun) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_an_unclean_election_ends_a_wait_with_the_best_in_sync_member() -> None:
    image = cluster(partition(NO_LEADER, (1, 2, 3)), brokers=[2, 3])
    facts = NO_FACTS.with_ends(2, {KEY: LogEnd(5, 10)}).with_ends(3, {KEY: LogEnd(5, 11)})
    after = elect_unclean(image, KEY, facts)
    assert state(after) == (3, 6, (3,))
    assert not after.topics[TOPIC].partitions[0].is_recovering


def test_leaders_are_brought_back_where_too_many_are_elsewhere_r49() -> None:
    away = partition(2, (1, 2))
    image = cluster(*[away] * 1, *[partition(1, (1, 2))] * 9)
    assert imbalanced_partitions(image, 10) == (), "exactly ten percent is allowed"
    assert imbalanced_partitions(image, 9) == (KEY,)
    not_possible = cluster(away, partition(2, (2,)), partition(NO_LEADER, (1,)))
    assert imbalanced_partitions(not_possible, 10) == (KEY,)
    assert imbalanced_partitions(mark_deleted(not_possible, TOPIC), 10) == ()
