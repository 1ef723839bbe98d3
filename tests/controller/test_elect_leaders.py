"""Elections that are asked for (R68), and leaders that are brought back to where they should be (R49)."""

from dataclasses import replace

import pytest

from lamina.controller.brokers import brokers_gone, replicas_offline
from lamina.controller.elect_leaders import ElectionType, balance_leaders, elect_leaders
from lamina.controller.election import NO_FACTS, ElectionFacts, LogEnd
from lamina.errors import ErrorCode, KafkaError
from lamina.image.changes import mark_deleted, set_partitions
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER, Partition, new_partition
from tests.controller.cluster import KEY, TOPIC, cluster, partition, state

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def elected(image: Image, election_type: ElectionType, facts: ElectionFacts = NO_FACTS) -> Image:
    after, outcomes = elect_leaders(image, election_type, [KEY], facts)
    assert isinstance(outcomes[KEY], Partition)
    return after


def refusal(image: Image, election_type: ElectionType) -> ErrorCode:
    after, outcomes = elect_leaders(image, election_type, [KEY], NO_FACTS)
    assert after is image
    outcome = outcomes[KEY]
    assert isinstance(outcome, KafkaError)
    return outcome.code


# Preferred


def test_the_preferred_replica_leads_again_and_nobody_leaves_r45() -> None:
    assert state(elected(cluster(partition(2, (2, 1))), PREFERRED)) == (1, 6, (2, 1))


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
    assert refusal(image, PREFERRED) == code


def test_a_preferred_replica_must_be_online_r68() -> None:
    image = replicas_offline(cluster(partition(2, (2,))), 1, frozenset([KEY]), frozenset(), NO_FACTS)
    assert refusal(image, PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


# Unclean


def test_an_unclean_election_r68() -> None:
    image = brokers_gone(cluster(partition(1, (1,))), [1], NO_FACTS)
    after = elected(image, UNCLEAN)
    assert state(after) == (2, 7, (2,))
    assert after.topics[TOPIC].partitions[0].is_recovering


def test_an_unclean_election_that_cannot_be_r68() -> None:
    image = cluster(partition(1, (1,)))
    assert refusal(image, UNCLEAN) == ErrorCode.ELECTION_NOT_NEEDED
    nobody = brokers_gone(image, [1, 2, 3], NO_FACTS)
    assert refusal(nobody, UNCLEAN) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    never_begun = cluster(replace(new_partition((1, 2), online=()), partition_epoch=0), brokers=[])
    assert refusal(never_begun, UNCLEAN) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_an_unclean_election_ends_a_wait_with_the_best_in_sync_member() -> None:
    image = cluster(partition(NO_LEADER, (1, 2, 3)), brokers=[2, 3])
    facts = NO_FACTS.with_ends(2, {KEY: LogEnd(5, 10)}).with_ends(3, {KEY: LogEnd(5, 11)})
    after = elected(image, UNCLEAN, facts)
    assert state(after) == (3, 6, (3,))
    assert not after.topics[TOPIC].partitions[0].is_recovering


# Of several


def test_each_partition_has_its_own_outcome_r68() -> None:
    image = cluster(partition(2, (2, 1)), partition(1, (1, 2)), partition(2, (2, 3)))
    wanted = [(TOPIC, 2), (TOPIC, 1), (TOPIC, 0), (TOPIC, 3), (TOPIC, -1), ("nobody", 0)]
    after, outcomes = elect_leaders(image, PREFERRED, wanted, NO_FACTS)
    assert list(outcomes) == wanted
    assert [one.code if isinstance(one, KafkaError) else one.leader for one in outcomes.values()] == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        1,
        *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3,
    ]
    assert [state(after, index) for index in range(3)] == [(1, 6, (2, 1)), (1, 5, (1, 2)), (2, 5, (2, 3))]


@pytest.mark.parametrize("election_type", ElectionType)
def test_a_topic_that_is_being_deleted_elects_nobody_r68(election_type: ElectionType) -> None:
    image = mark_deleted(cluster(partition(2, (2, 1)), partition(NO_LEADER, (3,), (3,)), brokers=[1, 2]), TOPIC)
    assert refusal(image, election_type) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert elect_leaders(image, election_type, None, NO_FACTS) == (image, {})


def test_of_all_partitions_those_in_need_are_told_r68() -> None:
    led_elsewhere, well, out_of_sync = partition(2, (2, 1)), partition(1, (1, 2)), partition(2, (2, 3))
    lost, hopeless = partition(NO_LEADER, (4,), (4, 2)), partition(NO_LEADER, (4,), (4,))
    image = cluster(led_elsewhere, well, out_of_sync, lost, hopeless)
    after, outcomes = elect_leaders(image, PREFERRED, None, NO_FACTS)
    assert [index for _, index in outcomes] == [0, 2, 3, 4]
    assert [one.leader for one in after.topics[TOPIC].partitions] == [1, 1, 2, NO_LEADER, NO_LEADER]
    after, outcomes = elect_leaders(image, UNCLEAN, None, NO_FACTS)
    assert [index for _, index in outcomes] == [3, 4]
    assert [one.leader for one in after.topics[TOPIC].partitions] == [2, 1, 2, 2, NO_LEADER]


# By itself


def moved(image: Image, allowed_percentage: int) -> list[int]:
    return [index for _, index in balance_leaders(image, allowed_percentage)]


def test_leaders_are_brought_back_where_too_many_are_elsewhere_r49() -> None:
    away = partition(2, (1, 2))
    image = cluster(*[away] * 1, *[partition(1, (1, 2))] * 9)
    assert moved(image, 10) == [], "exactly ten percent is allowed"
    assert moved(image, 9) == [0]
    assert state(set_partitions(image, balance_leaders(image, 9))) == (1, 6, (1, 2))


def test_each_broker_is_judged_by_its_own_partitions_r49() -> None:
    of_first = [partition(2, (1, 2)), *[partition(1, (1, 2))] * 3]
    of_second = [partition(1, (1, 2), (2, 1)), partition(1, (1, 2), (2, 1))]
    assert moved(cluster(*of_first, *of_second), 25) == [4, 5]


def test_only_elections_that_can_be_held_are_r49() -> None:
    not_possible = cluster(partition(2, (1, 2)), partition(2, (2,)), partition(NO_LEADER, (1,)))
    assert moved(not_possible, 10) == [0]
    assert moved(mark_deleted(not_possible, TOPIC), 10) == []
    offline = replicas_offline(cluster(partition(2, (1, 2))), 1, frozenset([KEY]), frozenset(), NO_FACTS)
    assert moved(offline, 0) == []


def test_a_silent_broker_would_not_learn_that_it_leads() -> None:
    image = cluster(partition(2, (1, 2)))
    assert list(balance_leaders(image, 0, silent={1})) == []
    assert list(balance_leaders(image, 0, silent={2, 3})) == [KEY]


def test_a_draining_broker_is_given_nothing_r49() -> None:
    image = cluster(partition(2, (1, 2)))
    draining = replace(image.brokers[1], is_draining=True)
    assert moved(replace(image, brokers={**image.brokers, 1: draining}), 0) == []
