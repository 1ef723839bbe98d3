"""Brokers come, go, restart and drain; controllers follow one another (R42, R48), with the classic bugs by name."""

from dataclasses import replace
from time import process_time

import pytest

from lamina.controller.brokers import (
    broker_drains,
    broker_ready,
    broker_unregistered,
    brokers_gone,
    elect_waiting,
    replicas_made,
    replicas_offline,
    take_over,
)
from lamina.controller.deletion import deletion_reported
from lamina.controller.elect_leaders import ElectionType, elect_leaders
from lamina.controller.election import NO_FACTS, ElectionFacts, LogEnd
from lamina.errors import BrokerIdNotRegistered
from lamina.image.changes import create_topic, mark_deleted
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER
from tests.controller.cluster import KEY, TOPIC, TOPIC_ID, arrival, brokers_alone, cluster, partition, state
from tests.image.steps import topic_id

NOTHING: frozenset[tuple[str, int]] = frozenset()


def unclean_stop(
    broker_id: int, last_epoch: int, log_end_offset: int, facts: ElectionFacts = NO_FACTS
) -> ElectionFacts:
    return facts.with_ends(broker_id, {KEY: LogEnd(last_epoch, log_end_offset)})


# Gone


def test_a_broker_that_fails_hands_over_what_it_led_and_leaves_the_rest_r48() -> None:
    image = cluster(partition(1, (1, 2, 3)), partition(2, (1, 2)), partition(1, (1,)), partition(2, (2, 3)))
    after = brokers_gone(image, [1], NO_FACTS)
    assert 1 not in after.brokers
    assert [state(after, index) for index in range(3)] == [(2, 6, (2, 3)), (2, 6, (2,)), (NO_LEADER, 6, (1,))]
    assert after.topics[TOPIC].partitions[3] is image.topics[TOPIC].partitions[3]


def test_brokers_that_go_together_leave_the_in_sync_set_to_either() -> None:
    image = cluster(partition(1, (1, 2)))
    assert state(brokers_gone(image, [1, 2], NO_FACTS)) == (NO_LEADER, 6, (1, 2))
    one_by_one = brokers_gone(brokers_gone(image, [1], NO_FACTS), [2], NO_FACTS)
    assert state(one_by_one) == (NO_LEADER, 7, (2,))


def test_a_broker_that_was_not_there_changes_nothing() -> None:
    image = cluster(partition(1, (1, 2)))
    assert brokers_gone(image, [9], NO_FACTS) == image


# Ready


def test_a_broker_that_comes_gives_leaders_to_those_who_have_none_r48() -> None:
    image = cluster(partition(NO_LEADER, (3,)), partition(1, (1, 2)), brokers=[1, 2])
    after = broker_ready(image, arrival(3), NO_FACTS)
    assert state(after) == (3, 6, (3,))
    assert after.topics[TOPIC].partitions[1] is image.topics[TOPIC].partitions[1]


def test_a_partition_made_while_its_brokers_drained_begins_when_one_is_back_r44() -> None:
    image = broker_drains(brokers_alone([1, 2]), 1, NO_FACTS)
    image = create_topic(image, TOPIC, TOPIC_ID, [(1,), (2, 1)])
    assert [state(image, index) for index in range(2)] == [(NO_LEADER, -1, ()), (2, 0, (2,))]
    after = broker_ready(image, arrival(1, epoch=11), NO_FACTS)
    assert state(after) == (1, 0, (1,))
    assert after.topics[TOPIC].partitions[0].partition_epoch == 0


def test_a_fast_bounce_is_a_failure_and_a_start_r97() -> None:
    """It restarted within the session timeout: nobody saw it go, and its log may be shorter now."""
    image = cluster(partition(1, (1, 2)), partition(2, (1, 2)), partition(1, (1,)))
    after = broker_ready(image, arrival(1, epoch=11), NO_FACTS)
    assert [state(after, index) for index in range(3)] == [(2, 6, (2,)), (2, 6, (2,)), (1, 7, (1,))]
    epochs = [one.partition_epoch for one in after.topics[TOPIC].partitions]
    assert epochs == [one.partition_epoch + 1 for one in image.topics[TOPIC].partitions], "each is written once"


def test_the_same_registration_again_is_no_bounce() -> None:
    image = cluster(partition(1, (1, 2)))
    assert broker_ready(image, arrival(1), NO_FACTS) == image


# Unclean stops and lost directories


def test_a_power_cut_of_all_is_waited_out() -> None:
    """Every in-sync member stopped uncleanly: the one with the greatest (last epoch, log end) leads."""
    image = cluster(partition(1, (1, 2)), brokers=[])
    facts = unclean_stop(2, 5, 80)
    image = take_over(image, 2, 4, [arrival(2, 20)], facts)
    assert state(image) == (NO_LEADER, 6, (1, 2))
    facts = unclean_stop(1, 5, 90, facts.unresolved_in(image))
    image = broker_ready(image, arrival(1, 21), facts)
    assert state(image) == (1, 7, (1,))
    assert facts.unresolved_in(image) == NO_FACTS


def test_a_power_cut_of_all_is_not_waited_out_for_ever() -> None:
    image = cluster(partition(1, (1, 2)), brokers=[])
    facts = unclean_stop(2, 5, 80)
    image = take_over(image, 2, 4, [arrival(2, 20)], facts)
    assert state(elect_waiting(image, replace(facts, overdue=frozenset({KEY})))) == (2, 7, (2,))


def test_a_lost_replica_leaves_the_in_sync_set_and_may_be_made_again() -> None:
    image = cluster(partition(1, (1, 2)), partition(2, (2, 3)))
    lost = [KEY, (TOPIC, 1)]
    after = broker_ready(image, arrival(1, 11, lost=lost), NO_FACTS)
    assert state(after) == (2, 6, (2,))
    assert [one.made_on for one in after.topics[TOPIC].partitions] == [(2, 3), (2, 3)]
    made = replicas_made(after, 1, [*lost, ("gone", 0), (TOPIC, 9)])
    assert [one.made_on for one in made.topics[TOPIC].partitions] == [(1, 2, 3), (1, 2, 3)]
    assert replicas_made(made, 1, lost) is made


def test_a_wiped_last_member_leaves_its_partition_offline_until_a_manual_unclean_election() -> None:
    image = brokers_gone(cluster(partition(1, (1,))), [1], NO_FACTS)
    image = broker_ready(image, arrival(1, 11, lost=[KEY]), NO_FACTS)
    assert state(image) == (NO_LEADER, 6, (1,))
    assert image.topics[TOPIC].partitions[0].made_on == (1, 2, 3), "so it does not make an empty one"
    assert elect_waiting(image, NO_FACTS) is image
    assert broker_ready(image, arrival(1, 12, lost=[KEY]), NO_FACTS).topics == image.topics, "nor after a restart"

    image, _ = elect_leaders(image, ElectionType.UNCLEAN, [KEY], NO_FACTS)
    assert state(image) == (2, 7, (2,))
    image = replicas_offline(image, 1, NOTHING, frozenset([KEY]), NO_FACTS)
    assert image.topics[TOPIC].partitions[0].made_on == (2, 3), "it reports again, and now it may copy"
    image = replicas_offline(image, 1, NOTHING, NOTHING, NO_FACTS)
    assert image.brokers[1].offline == frozenset()


def test_a_lost_member_waits_for_another_that_is_away() -> None:
    image = brokers_gone(cluster(partition(1, (1, 2))), [1, 2], NO_FACTS)
    image = broker_ready(image, arrival(1, 11, lost=[KEY]), NO_FACTS)
    assert state(image) == (NO_LEADER, 6, (1, 2))
    image = broker_ready(image, arrival(2, 12), NO_FACTS)
    assert state(image) == (2, 7, (2,))


def test_a_failed_directory_takes_its_replicas_offline_and_not_its_broker_r81() -> None:
    image = cluster(partition(1, (1, 2)), partition(1, (1, 2)), partition(1, (1,)))
    failed = frozenset([KEY, (TOPIC, 2), ("unknown", 0)])
    after = replicas_offline(image, 1, failed, NOTHING, NO_FACTS)
    assert [state(after, index) for index in range(3)] == [(2, 6, (2,)), (1, 5, (1, 2)), (NO_LEADER, 6, (1,))]
    assert after.topics[TOPIC].partitions[1] is image.topics[TOPIC].partitions[1]
    assert after.topics[TOPIC].partitions[0].made_on == (1, 2, 3), "its files are still there"
    assert replicas_offline(after, 1, failed, NOTHING, NO_FACTS) is after
    back = replicas_offline(after, 1, NOTHING, NOTHING, NO_FACTS)
    assert state(back, 2) == (1, 7, (1,))


# Draining


def test_leaders_move_away_from_a_broker_that_drains_r72() -> None:
    image = cluster(partition(1, (1, 2, 3)), partition(2, (1, 2)), partition(1, (1,), replicas=(1,)))
    after = broker_drains(image, 1, NO_FACTS)
    assert [state(after, index) for index in range(3)] == [(2, 6, (2, 3)), (2, 6, (2,)), (1, 5, (1,))]
    assert broker_drains(after, 1, NO_FACTS).topics == after.topics


# Unregistered


def test_a_broker_that_is_unregistered_hands_over_and_stays_assigned_r73() -> None:
    image = cluster(partition(1, (1, 2, 3)), partition(1, (1,), replicas=(1,)))
    after = broker_unregistered(image, 1, NO_FACTS)
    assert [state(after, index) for index in range(2)] == [(2, 6, (2, 3)), (1, 5, (1,))]
    gone = brokers_gone(after, [1], NO_FACTS)
    assert [state(gone, index) for index in range(2)] == [(2, 6, (2, 3)), (NO_LEADER, 6, (1,))]
    assert [one.replicas for one in gone.topics[TOPIC].partitions] == [(1, 2, 3), (1,)]


def test_nobody_waits_for_what_an_unregistered_broker_has_of_deleted_topics_r73() -> None:
    image = mark_deleted(cluster(partition(1, (1,), replicas=(1,))), TOPIC)
    after = broker_unregistered(image, 1, NO_FACTS)
    assert (after.topics, after.deletions) == ({}, {})


def test_a_broker_that_is_away_is_known_by_its_replicas_or_by_what_it_has_of_deleted_topics_r73() -> None:
    image = brokers_gone(cluster(partition(1, (1, 2, 3))), [1], NO_FACTS)
    assert broker_unregistered(image, 1, NO_FACTS) is image
    remembered = deletion_reported(deletion_reported(mark_deleted(image, TOPIC), 2, [TOPIC_ID]), 3, [TOPIC_ID])
    assert remembered.deletions == {TOPIC_ID: (1,)}
    forgotten = broker_unregistered(remembered, 1, NO_FACTS)
    assert forgotten.deletions == {}
    reassigned = cluster(replace(partition(2, (2, 3), replicas=(2, 3)), made_on=(1, 2, 3)), brokers=[2, 3])
    assert broker_unregistered(reassigned, 1, NO_FACTS).topics[TOPIC].partitions[0].made_on == (2, 3)
    for nobody, known in ((1, forgotten), (4, image)):
        with pytest.raises(BrokerIdNotRegistered):
            broker_unregistered(known, nobody, NO_FACTS)


# Taking over


def test_a_controller_that_takes_over_sees_who_went_and_who_restarted_meanwhile_r42() -> None:
    image = cluster(partition(1, (1, 2)), partition(2, (2, 3)), partition(3, (1, 3)), partition(3, (3,)))
    after = take_over(image, 3, 7, [arrival(2, epoch=11), arrival(3)], NO_FACTS)
    assert (after.controller_id, after.controller_epoch, sorted(after.brokers)) == (3, 7, [2, 3])
    assert [state(after, index) for index in range(4)] == [(2, 7, (2,)), (3, 6, (3,)), (3, 6, (3,)), (3, 5, (3,))]
    assert after.topics[TOPIC].partitions[3] is image.topics[TOPIC].partitions[3]


def test_a_controller_that_knows_no_brokers_moves_no_leader_without_need() -> None:
    image = replace(cluster(partition(1, (1, 2)), partition(2, (2, 3))), brokers={})
    after = take_over(image, 1, 1, [arrival(one) for one in (1, 2, 3)], NO_FACTS)
    assert after.topics is image.topics


def test_a_restart_that_no_controller_saw_costs_membership_only_after_an_unclean_stop() -> None:
    image = replace(cluster(partition(1, (1, 2))), brokers={})
    brokers = [arrival(one, 11) for one in (1, 2)]
    assert state(take_over(image, 1, 1, brokers, unclean_stop(2, 5, 10))) == (1, 6, (1,))
    assert state(take_over(image, 1, 1, brokers, unclean_stop(1, 5, 10))) == (2, 6, (2,))


def test_a_replica_that_is_down_does_not_hold_up_a_take_over_r95() -> None:
    """KAFKA-4214: a controller failed with the first target that was away, and nothing after it was done."""
    image = cluster(partition(3, (3,), replicas=(3,)), partition(3, (1, 3)), partition(NO_LEADER, (2,)))
    after = take_over(image, 1, 2, [arrival(1), arrival(2)], NO_FACTS)
    assert [state(after, index) for index in range(3)] == [(NO_LEADER, 6, (3,)), (1, 6, (1,)), (2, 6, (2,))]
    back = broker_ready(after, arrival(3, 11), NO_FACTS)
    assert state(back) == (3, 7, (3,)), "and it goes on from what is stored when the replica is back"


def test_topics_that_are_being_deleted_have_no_elections() -> None:
    image = mark_deleted(cluster(partition(1, (1, 2))), TOPIC)
    assert brokers_gone(image, [1], NO_FACTS).topics == image.topics


# Speed


def large_cluster() -> Image:
    image = brokers_alone([1, 2, 3])
    for number in range(200):
        orders = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
        image = create_topic(image, f"t{number}", topic_id(number), [orders[index % 3] for index in range(10)])
    return image


def test_the_leaders_of_a_broker_with_two_thousand_partitions_move_in_an_instant() -> None:
    """About 15 ms; the bound leaves room for a busy machine."""
    image = large_cluster()
    started = process_time()
    gone = brokers_gone(image, [1], NO_FACTS)
    back = broker_ready(gone, arrival(1, 11), NO_FACTS)
    took = process_time() - started
    assert all(one.leader != 1 and 1 not in one.isr for topic in back.topics.values() for one in topic.partitions)
    assert took < 0.2
