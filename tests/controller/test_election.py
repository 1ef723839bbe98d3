"""The rules for one partition: who leads, who is in sync (R44-R47), and what Lamina adds for unclean stops."""

from dataclasses import replace

import pytest

from lamina.controller.brokers import elect_waiting, waiting_partitions
from lamina.controller.election import NO_FACTS, ElectionFacts, LogEnd, elect
from lamina.image.changes import register_broker, remove_broker, set_configs
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import NO_LEADER, Partition, new_partition
from tests.controller.cluster import KEY, TOPIC, brokers_alone, cluster, partition

UNCLEAN = ElectionFacts(is_unclean_enabled=True)


def elected(old: Partition, *online: int, facts: ElectionFacts = NO_FACTS) -> Partition:
    return elect(brokers_alone(online), KEY, old, facts)


def with_ends(**ends: tuple[int, int]) -> ElectionFacts:
    """Ends of brokers that stopped uncleanly, as ``b1=(last epoch, log end offset)``."""
    facts = NO_FACTS
    for name, end in ends.items():
        facts = facts.with_ends(int(name[1:]), {KEY: LogEnd(*end)})
    return facts


# Kafka's rules


def test_a_new_partition_begins_with_its_online_replicas_r44() -> None:
    unmade = new_partition((3, 1, 2), online=())
    assert (unmade.leader, unmade.leader_epoch, unmade.isr, unmade.partition_epoch) == (NO_LEADER, -1, (), -1)
    assert elected(unmade, 7) is unmade
    begun = elected(unmade, 2, 1)
    assert (begun.leader, begun.leader_epoch, begun.isr) == (1, 0, (1, 2))


def test_nothing_changes_while_all_are_online() -> None:
    old = partition(2, (1, 2))
    assert elected(old, 1, 2, 3) is old


def test_the_first_in_sync_replica_in_assignment_order_leads_r45() -> None:
    assert elected(partition(1, (2, 3, 1), replicas=(1, 3, 2)), 2, 3) == replace(
        partition(3, (2, 3), replicas=(1, 3, 2)), leader_epoch=6
    )


def test_one_that_may_be_dead_is_elected_only_where_no_other_can_be() -> None:
    silent = ElectionFacts(silent=frozenset({2}))
    assert elected(partition(1, (1, 2, 3)), 2, 3, facts=silent) == replace(partition(3, (2, 3)), leader_epoch=6)
    assert elected(partition(1, (1, 2)), 2, facts=silent).leader == 2
    assert elected(partition(2, (2, 3)), 2, 3, facts=silent).leader == 2, "it leads on until it is removed"


def test_a_replica_that_is_not_in_sync_does_not_lead_r45() -> None:
    assert elected(partition(1, (1,)), 2, 3) == replace(partition(NO_LEADER, (1,)), leader_epoch=6)


def test_a_follower_that_goes_offline_leaves_in_a_new_leader_epoch_r47() -> None:
    assert elected(partition(1, (1, 2, 3)), 1, 3) == replace(partition(1, (1, 3)), leader_epoch=6)


def test_the_last_in_sync_member_stays_r47() -> None:
    offline = elected(partition(2, (2,)), 1, 3)
    assert (offline.leader, offline.isr) == (NO_LEADER, (2,))
    assert elected(offline, 1, 3) is offline, "and nothing more changes while it is away"
    assert elected(offline, 1, 2, 3).leader == 2


def test_where_all_went_at_once_each_may_lead_when_it_comes_back() -> None:
    offline = elected(partition(1, (1, 2)), 3)
    assert (offline.leader, offline.isr) == (NO_LEADER, (1, 2))
    assert elected(offline, 2, 3) == replace(offline, leader=2, leader_epoch=7, isr=(2,))


def test_an_unclean_election_takes_the_first_online_replica_r45_r46() -> None:
    unclean = elected(partition(1, (1,), replicas=(1, 3, 2)), 2, 3, facts=UNCLEAN)
    assert (unclean.leader, unclean.leader_epoch, unclean.isr, unclean.is_recovering) == (3, 6, (3,), True)
    assert elected(partition(1, (1, 2)), 2, 3, facts=UNCLEAN).is_recovering is False, "a clean one was possible"
    assert elected(partition(1, (1,)), facts=UNCLEAN).leader == NO_LEADER


@pytest.mark.parametrize(("on_topic", "on_broker", "leader"), [("true", False, 2), ("false", True, NO_LEADER)])
def test_a_topic_says_whether_it_is_elected_uncleanly_r46(on_topic: str, on_broker: bool, leader: int) -> None:
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    image = set_configs(brokers_alone([2]), resource, {"unclean.leader.election.enable": on_topic})
    facts = ElectionFacts(is_unclean_enabled=on_broker)
    assert elect(image, KEY, partition(1, (1,)), facts).leader == leader


def test_a_replica_that_has_no_directory_is_never_elected_uncleanly() -> None:
    """It would begin with an empty log, and all others would be cut to it (design: a lost replica never leads)."""
    old = replace(partition(1, (1,)), made_on=(1, 3))
    assert elected(old, 2, 3, facts=UNCLEAN).leader == 3
    assert elected(old, 2, facts=UNCLEAN).leader == NO_LEADER


def test_members_outside_the_assignment_leave_r96() -> None:
    """KAFKA-9672: an in-sync set with ids that keep no replica would be kept for ever."""
    assert elected(partition(1, (1, 9)), 1, 2, 3, 9).isr == (1,)
    assert elected(partition(9, (9, 2)), 1, 2, 3, 9).leader == 2


# A broker that drains, a directory that has failed


def draining(image: Image, *broker_ids: int) -> Image:
    for broker_id in broker_ids:
        image = register_broker(image, replace(image.brokers[broker_id], is_draining=True))
    return image


def test_a_draining_broker_gives_its_leadership_to_another_member_r45() -> None:
    image = draining(brokers_alone([1, 2, 3]), 1, 3)
    moved = elect(image, KEY, partition(1, (1, 2, 3)), NO_FACTS)
    assert (moved.leader, moved.isr) == (2, (2,))


def test_a_draining_broker_leads_on_where_no_other_member_is_online_r72() -> None:
    image = draining(brokers_alone([1, 2, 3]), 1)
    alone = partition(1, (1,))
    assert elect(image, KEY, alone, NO_FACTS) is alone
    assert elect(draining(image, 2), KEY, partition(1, (1, 2)), NO_FACTS).isr == (1,)


def test_a_draining_broker_that_has_restarted_uncleanly_does_not_lead_on() -> None:
    """It may have lost what it acknowledged: its in-sync set waits for whoever has it."""
    image = draining(brokers_alone([1]), 1)
    assert elect(image, KEY, partition(1, (1, 2)), with_ends(b1=(5, 10))) == replace(
        partition(NO_LEADER, (1, 2)), leader_epoch=6
    )


def test_a_draining_broker_is_not_elected_r91() -> None:
    image = draining(brokers_alone([1, 2, 3]), 1)
    assert elect(image, KEY, partition(NO_LEADER, (1,)), NO_FACTS).leader == NO_LEADER


def test_a_replica_in_a_failed_directory_does_not_lead_r44() -> None:
    image = brokers_alone([1, 2, 3])
    image = register_broker(image, replace(image.brokers[1], offline=frozenset({KEY})))
    assert elect(image, KEY, partition(1, (1, 2)), NO_FACTS).isr == (2,)
    assert elect(image, KEY, partition(1, (1,)), NO_FACTS).leader == NO_LEADER
    assert elect(image, KEY, partition(1, (1,)), UNCLEAN).leader == 2
    assert elect(image, (TOPIC, 1), partition(1, (1,)), NO_FACTS).leader == 1, "only that replica"


# Unclean stops


def test_a_member_that_stopped_cleanly_leads_at_once() -> None:
    elected_now = elected(partition(1, (1, 2, 3)), 2, 3, facts=with_ends(b2=(4, 900)))
    assert (elected_now.leader, elected_now.isr) == (3, (3,)), "and the other copies before it is in sync again"


def test_a_leader_that_never_stopped_drops_a_member_that_did_r97() -> None:
    assert elected(partition(1, (1, 2)), 1, 2, facts=with_ends(b2=(5, 100))).isr == (1,)


def test_after_a_power_cut_of_all_the_furthest_log_leads_once_all_are_back() -> None:
    old = partition(1, (1, 2, 3))
    facts = with_ends(b1=(4, 70), b2=(5, 50), b3=(5, 60))
    waiting = elected(old, 1, 3, facts=facts)
    assert (waiting.leader, waiting.isr) == (NO_LEADER, (1, 2, 3)), "2 may have more"
    assert elected(waiting, 1, 3, facts=facts) is waiting
    best = elected(waiting, 1, 2, 3, facts=facts)
    assert (best.leader, best.leader_epoch, best.isr) == (3, 7, (3,)), "the last epoch decides, then the end"


def test_members_with_equal_logs_stay_in_sync() -> None:
    best = elected(partition(1, (3, 1, 2)), 1, 2, 3, facts=with_ends(b1=(5, 59), b2=(5, 60), b3=(5, 60)))
    assert (best.leader, best.isr) == (2, (3, 2))


def test_a_wait_that_is_over_takes_the_best_that_is_there() -> None:
    facts = replace(with_ends(b1=(4, 70), b3=(5, 60)), overdue=frozenset({KEY}))
    assert elected(partition(1, (1, 2, 3)), 1, 3, facts=facts).isr == (3,)
    assert elected(partition(1, (1, 2)), 3, facts=facts).leader == NO_LEADER, "but nobody who is not in sync"


def test_nobody_waits_for_a_member_whose_directory_is_gone() -> None:
    image = brokers_alone([1, 2])
    image = register_broker(image, replace(image.brokers[2], offline=frozenset({KEY})))
    assert elect(image, KEY, partition(2, (1, 2)), with_ends(b1=(1, 1))).leader == 1


def test_a_leader_that_lost_its_end_goes_on_in_a_new_epoch() -> None:
    """In the old one, what it lost and what it writes instead could not be told apart."""
    again = elected(partition(1, (1,)), 1, 2, facts=with_ends(b1=(5, 10)))
    assert (again.leader, again.leader_epoch, again.isr) == (1, 6, (1,))


def test_unclean_elections_do_not_cut_a_wait_short() -> None:
    facts = replace(with_ends(b1=(4, 70)), is_unclean_enabled=True)
    assert elected(partition(1, (1, 2)), 1, 3, facts=facts).leader == NO_LEADER


def test_a_suspect_does_not_lead_before_a_member_that_drains() -> None:
    """The draining one has all that was committed; it stops cleanly, and leads when it is back."""
    image = draining(brokers_alone([1, 2]), 2)
    assert elect(image, KEY, partition(NO_LEADER, (1, 2)), with_ends(b1=(1, 1))).leader == NO_LEADER


def test_waiting_partitions_are_told_until_they_are_overdue() -> None:
    image = cluster(partition(NO_LEADER, (1, 2)), brokers=[1, 3])
    facts = with_ends(b1=(4, 70))
    assert waiting_partitions(image, facts) == {KEY}
    assert elect_waiting(image, facts) is image
    late = replace(facts, overdue=frozenset({KEY}))
    assert waiting_partitions(image, late) == frozenset()
    assert elect_waiting(image, late).topics[TOPIC].partitions[0].leader == 1
    assert waiting_partitions(remove_broker(image, 1), facts) == frozenset(), "nobody is there who could lead"


def test_facts_go_when_an_election_has_answered_them() -> None:
    facts = replace(with_ends(b1=(4, 70), b3=(1, 1)), overdue=frozenset({KEY}))
    waiting = facts.unresolved_in(cluster(partition(NO_LEADER, (1, 2))))
    assert waiting.ends == {KEY: {1: LogEnd(4, 70)}}, "3 is not in sync: its log does not matter"
    assert waiting.overdue == {KEY}
    assert facts.unresolved_in(cluster(partition(1, (1,)))) == NO_FACTS
    assert facts.unresolved_in(brokers_alone([1])) == NO_FACTS


def test_a_change_in_between_answers_nothing_for_a_broker_that_is_just_coming_back() -> None:
    """The image still shows it as the leader that it was before it stopped."""
    facts = with_ends(b1=(4, 70))
    led = cluster(partition(1, (1, 2)))
    assert facts.unresolved_in(led, arriving={1}) == facts
    assert facts.unresolved_in(led) == NO_FACTS


def test_an_end_stays_known_through_another_stop() -> None:
    facts = with_ends(b1=(4, 70)).with_ends(1, {})
    assert facts == with_ends(b1=(4, 70))
