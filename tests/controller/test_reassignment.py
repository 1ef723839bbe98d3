"""Reassignments step by step: begun, completed, cancelled, one on top of another, and what holds each of them up."""

from dataclasses import replace

import pytest

from lamina.controller.brokers import (
    broker_drains,
    broker_ready,
    brokers_gone,
    replicas_offline,
    replicas_removed,
    take_over,
)
from lamina.controller.deletion import deletion_reported, finish_deletions
from lamina.controller.election import NO_FACTS, ElectionFacts, LogEnd
from lamina.controller.in_sync import BrokerState, InSyncRequest, alter_partitions
from lamina.controller.reassignment import cancel, reassign
from lamina.errors import ErrorCode, KafkaError
from lamina.image.changes import create_topic, mark_deleted, mark_made, set_configs, set_partitions
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import NO_LEADER, Partition
from tests.controller.cluster import KEY, TOPIC, TOPIC_ID, arrival, brokers_alone, cluster, partition, state

FIVE = (1, 2, 3, 4, 5)


def image_of(found: Partition, brokers: tuple[int, ...] = FIVE) -> Image:
    return cluster(found, brokers=brokers)


def of(image: Image) -> Partition:
    return image.topics[TOPIC].partitions[0]


def begun(image: Image, *replicas: int, facts: ElectionFacts = NO_FACTS) -> Image:
    return set_partitions(image, {KEY: reassign(image, KEY, replicas, facts)})


def cancelled(image: Image, facts: ElectionFacts = NO_FACTS) -> Image:
    return set_partitions(image, {KEY: cancel(image, KEY, facts)})


def in_sync(image: Image, *broker_ids: int) -> tuple[Image, Partition | KafkaError]:
    """Their leader says that these are in sync."""
    found = of(image)
    request = InSyncRequest(
        found.leader_epoch, found.partition_epoch, tuple(BrokerState(one, 10) for one in broker_ids)
    )
    sender = image.brokers[found.leader]
    after, outcomes = alter_partitions(image, sender.id, sender.epoch, {(TOPIC_ID, 0): request}, NO_FACTS)
    return after, outcomes[TOPIC_ID, 0]


def joined(image: Image, *broker_ids: int) -> Image:
    return in_sync(image, *broker_ids)[0]


def refusal(image: Image, *replicas: int, facts: ElectionFacts = NO_FACTS, may_change_factor: bool = True) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        reassign(image, KEY, replicas, facts, may_change_factor=may_change_factor)
    return refused.value.code


HEALTHY = image_of(partition(1, (1, 2, 3)))


# Beginning


def test_wanted_replicas_come_first_and_those_that_will_go_after_them_r51() -> None:
    after = begun(HEALTHY, 4, 2, 5)
    assert of(after).assignment == ((4, 2, 5, 1, 3), (4, 5), (1, 3))
    assert (of(after).origin, of(after).target) == ((2, 1, 3), (4, 2, 5))
    assert state(after) == (1, 5, (1, 2, 3))
    assert of(after).partition_epoch == of(HEALTHY).partition_epoch, "who leads and who is in sync has not changed"


def test_replicas_that_are_only_added_take_nobody_away() -> None:
    after = begun(HEALTHY, 1, 2, 3, 4)
    assert of(after).assignment == ((1, 2, 3, 4), (4,), ())


def test_another_order_is_there_at_once_and_moves_no_leader() -> None:
    after = begun(HEALTHY, 3, 1, 2)
    assert of(after).assignment == ((3, 1, 2), (), ())
    assert state(after) == (1, 5, (1, 2, 3))


def test_replicas_that_all_stay_in_sync_remain_at_once() -> None:
    after = begun(HEALTHY, 1, 2)
    assert of(after).assignment == ((1, 2), (), ())
    assert state(after) == (1, 6, (1, 2)), "in an epoch in which the third is shut out"
    assert of(after).made_on == (1, 2, 3), "until it has deleted what it has"


def test_a_partition_that_nobody_has_begun_is_assigned_anew() -> None:
    image = create_topic(brokers_alone([4, 5]), TOPIC, TOPIC_ID, [(4,)])
    image = set_partitions(image, {KEY: Partition((1, 2), NO_LEADER, -1, (), partition_epoch=-1)})
    after = begun(image, 5, 1)
    assert of(after).assignment == ((5, 1), (), ())
    assert state(after) == (5, 0, (5,))


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, -2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_a_partition_cannot_have_is_refused_r69(replicas: tuple[int, ...], code: ErrorCode) -> None:
    assert refusal(HEALTHY, *replicas) == code


def test_the_number_of_replicas_may_be_ruled_out_to_change_r69() -> None:
    assert refusal(HEALTHY, 1, 2, 3, 4, may_change_factor=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    reassigning = begun(HEALTHY, 4, 2, 5)
    assert refusal(reassigning, 1, 2, 3, 4, may_change_factor=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert len(reassign(reassigning, KEY, (1, 4, 5), NO_FACTS, may_change_factor=False).target) == 3


def test_who_is_added_must_be_there_and_who_stays_need_not_be_r69() -> None:
    image = brokers_gone(HEALTHY, [3, 4], NO_FACTS)
    assert refusal(image, 1, 2, 4) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refusal(broker_drains(HEALTHY, 4, NO_FACTS), 1, 2, 4) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(image, KEY, (1, 3, 5), NO_FACTS).adding == (5,)


@pytest.mark.parametrize("key", [("unknown", 0), (TOPIC, 1), (TOPIC, -1)])
def test_partitions_that_are_not_there_r69(key: tuple[str, int]) -> None:
    with pytest.raises(KafkaError) as refused:
        reassign(HEALTHY, key, (1,), NO_FACTS)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Completing


def test_it_is_complete_when_the_last_replica_that_is_added_is_in_sync_r51() -> None:
    image = joined(begun(HEALTHY, 4, 2, 5), 1, 2, 3, 4)
    assert of(image).is_reassigning
    image, outcome = in_sync(image, 1, 2, 3, 4, 5)
    assert of(image).assignment == ((4, 2, 5), (), ())
    assert state(image) == (4, 6, (4, 2, 5)), "the first of the wanted ones leads, for the leader was to go"
    assert isinstance(outcome, KafkaError)
    assert outcome.code == ErrorCode.NEW_LEADER_ELECTED


def test_a_leader_that_stays_leads_on_in_another_epoch_r51() -> None:
    image, outcome = in_sync(begun(HEALTHY, 4, 1, 2), 1, 2, 3, 4)
    assert state(image) == (1, 6, (4, 1, 2))
    assert outcome is of(image)


def test_replicas_that_were_only_added_need_no_new_epoch() -> None:
    image = joined(begun(HEALTHY, 1, 2, 3, 4), 1, 2, 3, 4)
    assert of(image).assignment == ((1, 2, 3, 4), (), ())
    assert state(image) == (1, 5, (1, 2, 3, 4))


def test_an_event_is_one_change_of_the_state_however_much_it_brings() -> None:
    image = begun(HEALTHY, 4)
    after = joined(image, 1, 2, 3, 4)
    assert of(after).replicas == (4,)
    assert of(after).partition_epoch == of(image).partition_epoch + 1


def test_the_leader_is_the_first_wanted_replica_that_is_in_sync_and_online_r45() -> None:
    image = joined(begun(HEALTHY, 5, 3, 4), 1, 3, 4)
    image = broker_drains(image, 3, NO_FACTS)
    image = joined(image, 1, 4, 5)
    assert state(image) == (5, image.topics[TOPIC].partitions[0].leader_epoch, (5, 4))


def test_a_sick_replica_that_neither_comes_nor_goes_holds_nothing_up_r95() -> None:
    """KAFKA-19975: what comes is worth what goes, whatever becomes of the others."""
    image = brokers_gone(HEALTHY, [3], NO_FACTS)
    image = joined(begun(image, 4, 2, 3), 1, 2, 4)
    assert of(image).assignment == ((4, 2, 3), (), ())
    assert of(image).isr == (4, 2)


def test_where_more_go_than_come_all_that_stay_have_to_be_in_sync_r51() -> None:
    image = brokers_gone(HEALTHY, [3], NO_FACTS)
    assert of(begun(image, 1, 3)).assignment == ((1, 3, 2), (), (2,)), "or one copy would be left"
    image = begun(image, 4, 3)
    image = joined(image, 1, 2, 4)
    assert of(image).is_reassigning
    image = broker_ready(image, arrival(3, 11), NO_FACTS)
    request = InSyncRequest(
        of(image).leader_epoch,
        of(image).partition_epoch,
        (*(BrokerState(one, 10) for one in (1, 2, 4)), BrokerState(3, 11)),
    )
    image, _ = alter_partitions(image, 1, 10, {(TOPIC_ID, 0): request}, NO_FACTS)
    assert of(image).assignment == ((4, 3), (), ())
    assert of(image).isr == (4, 3)


def test_a_wanted_replica_that_has_restarted_uncleanly_completes_nothing() -> None:
    """Its leader saw it in sync before; what it has lost since is known, and not yet in any image."""
    image = joined(begun(HEALTHY, 4, 2, 5), 1, 2, 3, 4)
    facts = NO_FACTS.with_ends(4, {KEY: LogEnd(5, 10)})
    request = InSyncRequest(5, of(image).partition_epoch, tuple(BrokerState(one, 10) for one in FIVE))
    after, _ = alter_partitions(image, 1, 10, {(TOPIC_ID, 0): request}, facts)
    assert (of(after).is_reassigning, state(after)) == (True, (1, 5, (4, 2, 5, 1, 3)))
    after = broker_ready(after, arrival(4, 11), facts)
    assert (of(after).is_reassigning, state(after)) == (True, (1, 6, (2, 5, 1, 3)))


def test_nor_is_it_what_a_cancelled_reassignment_goes_on_with() -> None:
    image = joined(begun(HEALTHY, 4), 1, 2, 3)
    waits = replace(of(image), leader=4, isr=(4, 2))
    image = set_partitions(image, {KEY: waits})
    with pytest.raises(KafkaError, match="only replicas are in sync that would go"):
        cancel(image, KEY, NO_FACTS.with_ends(2, {KEY: LogEnd(5, 10)}))
    assert of(cancelled(image)).leader == 2


def test_a_reassignment_goes_on_under_the_next_controller_r95() -> None:
    """KAFKA-4214: it is in the store, and a target that is down fails nobody."""
    image = brokers_gone(begun(HEALTHY, 4, 2, 5), [5], NO_FACTS)
    image = take_over(replace(image, brokers={}), 2, 9, [arrival(one) for one in (1, 2, 3, 4)], NO_FACTS)
    assert of(image).assignment == ((4, 2, 5, 1, 3), (4, 5), (1, 3))
    image = joined(image, 1, 2, 3, 4)
    image = broker_ready(image, arrival(5, 10), NO_FACTS)
    assert of(joined(image, 1, 2, 3, 4, 5)).replicas == (4, 2, 5)


def test_one_that_was_stored_by_half_is_finished_by_the_next_controller_r51() -> None:
    """Its state says who leads and who is in sync from now on, and the assignment was not written any more."""
    half = replace(partition(4, (4, 2)), replicas=(4, 2, 1), adding=(4,), removing=(1,))
    image = take_over(replace(image_of(half), brokers={}), 2, 9, [arrival(one) for one in FIVE], NO_FACTS)
    assert of(image).assignment == ((4, 2), (), ())
    assert state(image) == (4, 6, (4, 2))


def test_one_that_waited_for_a_broker_is_complete_when_that_comes_back() -> None:
    """The only replica that is to stay is about to stop."""
    image = broker_drains(image_of(partition(1, (1,), replicas=(1, 2))), 1, NO_FACTS)
    image = begun(image, 1)
    assert of(image).assignment == ((1, 2), (), (2,))
    back = broker_ready(image, arrival(1, 11), NO_FACTS)
    assert of(back).assignment == ((1,), (), ())
    assert (of(back).leader, of(back).partition_epoch) == (1, of(image).partition_epoch + 1)


def test_a_partition_without_a_leader_waits_for_one_first() -> None:
    image = joined(begun(HEALTHY, 4, 2, 3), 1)
    image = brokers_gone(image, [1], NO_FACTS)
    assert (of(image).leader, of(image).is_reassigning) == (NO_LEADER, True)
    image = broker_ready(image, arrival(1, 11), NO_FACTS)
    assert (of(image).leader, of(image).is_reassigning) == (1, True)


# Cancelling


def test_a_cancelled_reassignment_leaves_the_replicas_from_before_r52() -> None:
    image = joined(begun(HEALTHY, 4, 2, 5), 1, 2, 3, 4)
    after = cancelled(image)
    assert of(after).assignment == ((2, 1, 3), (), ())
    assert state(after) == (1, 6, (2, 1, 3)), "the one that was added is out, and shut out by its epoch (R96)"


def test_what_never_joined_is_shut_out_as_well_r96() -> None:
    after = cancelled(begun(HEALTHY, 4, 2, 5))
    assert state(after) == (1, 6, (2, 1, 3))


def test_a_leader_that_was_added_gives_way_to_one_from_before_r52() -> None:
    image = joined(begun(HEALTHY, 4, 5, 1), 1, 2, 3, 4)
    image = brokers_gone(image, [1], NO_FACTS)
    assert of(image).leader == 4
    after = cancelled(image)
    assert of(after).leader == 2
    assert of(after).isr == (2, 3)


def test_nothing_is_cancelled_where_nothing_is_reassigned_r69() -> None:
    with pytest.raises(KafkaError) as refused:
        cancel(HEALTHY, KEY, NO_FACTS)
    assert refused.value.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def only_added_in_sync() -> Image:
    image = joined(begun(HEALTHY, 4, 5, 1), 1, 4)
    return brokers_gone(image, [1], NO_FACTS)


def test_no_reassignment_is_cancelled_that_would_lose_what_is_committed_r52() -> None:
    image = only_added_in_sync()
    assert of(image).isr == (4,)
    with pytest.raises(KafkaError) as refused:
        cancel(image, KEY, NO_FACTS)
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_unless_unclean_elections_are_allowed_r52() -> None:
    topic = ConfigResource(ResourceType.TOPIC, TOPIC)
    image = set_configs(only_added_in_sync(), topic, {"unclean.leader.election.enable": "true"})
    after = of(cancelled(image))
    assert (after.leader, after.isr, after.is_recovering) == (2, (2,), True)


def test_unclean_elections_complete_no_reassignment() -> None:
    """The only wanted replica in sync cannot be used, and the old leader is well."""
    topic = ConfigResource(ResourceType.TOPIC, TOPIC)
    image = set_configs(HEALTHY, topic, {"unclean.leader.election.enable": "true"})
    waits = replace(partition(1, (1, 4)), replicas=(4, 5, 1), adding=(4,), removing=(1,), made_on=(1, 4, 5))
    image = set_partitions(image, {KEY: waits})
    after = replicas_offline(image, 4, frozenset([KEY]), frozenset(), NO_FACTS)
    assert state(after) == (1, 6, (1,))
    assert of(after).is_reassigning


def test_who_is_being_added_is_the_last_to_be_elected_uncleanly() -> None:
    """It has copied a part at best."""
    facts = ElectionFacts(is_unclean_enabled=True)
    image = joined(mark_made(begun(HEALTHY, 4, 5, 1), 4, [KEY]), 1)
    image = brokers_gone(image, [1], facts)
    assert (of(image).leader, of(image).is_recovering) == (2, True)
    image = brokers_gone(image, [2, 3], facts)
    assert (of(image).leader, of(image).is_recovering) == (4, True)


# One on top of another


def test_another_one_begins_from_where_the_first_began_r51() -> None:
    image = joined(begun(HEALTHY, 4, 2, 3), 1, 2, 3)
    after = begun(image, 5, 2, 3)
    assert of(after).assignment == ((5, 2, 3, 1), (5,), (1,))
    assert state(after) == (1, 6, (2, 3, 1)), "4 is shut out"


def test_what_both_want_to_add_goes_on_copying_r51() -> None:
    image = joined(begun(HEALTHY, 4, 5, 3), 1, 2, 3, 4)
    after = begun(image, 2, 4, 3)
    assert of(after).assignment == ((2, 4, 3), (), ()), "which is what is in sync already"
    assert state(after) == (2, 6, (2, 4, 3))


def test_an_added_replica_that_leads_goes_only_where_another_has_everything() -> None:
    image = only_added_in_sync()
    assert refusal(image, 5, 2, 3) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert of(begun(image, 4, 2, 3)).adding == ()


def test_the_same_again_changes_nothing() -> None:
    image = begun(HEALTHY, 4, 2, 5)
    assert begun(image, 4, 2, 5) == image
    assert begun(HEALTHY, 1, 2, 3) == HEALTHY


# What brokers delete, and topics that are deleted meanwhile


def test_who_has_deleted_its_replica_is_forgotten() -> None:
    image = begun(HEALTHY, 1, 2)
    assert of(replicas_removed(image, 3, [KEY])).made_on == (1, 2)
    assert replicas_removed(image, 4, [KEY]) is image


def test_a_replica_again_has_nothing_of_what_it_deleted_and_makes_it_anew() -> None:
    image = begun(begun(HEALTHY, 1, 2), 1, 2, 3)
    assert of(image).made_on == (1, 2, 3)
    assert of(replicas_removed(image, 3, [KEY])).made_on == (1, 2)


def test_word_that_comes_late_takes_nothing_from_a_replica_that_is_in_sync() -> None:
    assert replicas_removed(HEALTHY, 3, [KEY]) is HEALTHY


def test_the_topic_waits_for_all_that_may_have_some_of_it_r50() -> None:
    """Also who is added, who goes, and who has gone and not said that it has nothing."""
    image = mark_deleted(begun(begun(HEALTHY, 1, 2), 4, 2), TOPIC)
    for broker_id in (1, 2, 3):
        image = deletion_reported(image, broker_id, [TOPIC_ID])
    assert image.deletions == {TOPIC_ID: (4,)}
    image = deletion_reported(image, 4, [TOPIC_ID])
    assert (image.topics, image.deletions) == ({}, {})


def test_who_was_away_when_its_replica_went_is_remembered_when_the_topic_goes() -> None:
    image = begun(brokers_gone(HEALTHY, [3], NO_FACTS), 1, 2)
    assert of(image).made_on == (1, 2, 3)
    image = finish_deletions(mark_deleted(image, TOPIC))
    for broker_id in (1, 2):
        image = deletion_reported(image, broker_id, [TOPIC_ID])
    assert (image.topics, image.deletions) == ({}, {TOPIC_ID: (3,)})
