"""AlterPartition: every check of R54 in its order, and what comes of a change that is made."""

from dataclasses import replace

import pytest

from lamina.controller.brokers import broker_drains, broker_ready, brokers_gone, replicas_offline
from lamina.controller.election import NO_FACTS
from lamina.controller.in_sync import BrokerState, InSyncRequest, alter_partitions
from lamina.errors import ErrorCode, KafkaError, StaleBrokerEpoch
from lamina.image.changes import mark_deleted
from lamina.image.image import Image
from lamina.image.topic import Partition
from tests.controller.cluster import KEY, TOPIC, TOPIC_ID, arrival, cluster, partition, state
from tests.image.steps import topic_id

IMAGE = cluster(partition(1, (1, 2)))
PARTITION_EPOCH = IMAGE.topics[TOPIC].partitions[0].partition_epoch


def members(*ids: int, epoch: int = 10) -> tuple[BrokerState, ...]:
    return tuple(BrokerState(one, epoch) for one in ids)


ASKED = InSyncRequest(5, PARTITION_EPOCH, members(1, 2, 3))


def alter(image: Image, request: InSyncRequest, sender: int = 1) -> tuple[Image, Partition | KafkaError]:
    after, outcomes = alter_partitions(image, sender, 10, {(TOPIC_ID, 0): request}, NO_FACTS)
    return after, outcomes[TOPIC_ID, 0]


def refusal(image: Image, request: InSyncRequest, sender: int = 1) -> ErrorCode:
    after, outcome = alter(image, request, sender)
    assert after is image
    assert isinstance(outcome, KafkaError)
    return outcome.code


def test_the_in_sync_set_grows_and_shrinks_within_a_leader_epoch() -> None:
    after, outcome = alter(IMAGE, replace(ASKED, isr=members(3, 2, 1)))
    assert outcome is after.topics[TOPIC].partitions[0]
    assert state(after) == (1, 5, (1, 2, 3)), "in the order of the assignment"
    assert after.topics[TOPIC].partitions[0].partition_epoch == PARTITION_EPOCH + 1
    shrunk, _ = alter(after, replace(ASKED, partition_epoch=PARTITION_EPOCH + 1, isr=members(1)))
    assert state(shrunk) == (1, 5, (1,))


def test_what_is_so_already_is_a_success_even_with_an_old_partition_epoch() -> None:
    after, outcome = alter(IMAGE, replace(ASKED, partition_epoch=PARTITION_EPOCH - 1, isr=members(2, 1)))
    assert after is IMAGE
    assert outcome is IMAGE.topics[TOPIC].partitions[0]


@pytest.mark.parametrize(("sender", "epoch"), [(1, 9), (1, 11), (9, 10)])
def test_a_sender_must_be_registered_in_the_epoch_it_says(sender: int, epoch: int) -> None:
    with pytest.raises(StaleBrokerEpoch):
        alter_partitions(IMAGE, sender, epoch, {(TOPIC_ID, 0): ASKED}, NO_FACTS)


def test_unknown_topics_and_partitions() -> None:
    requests = {(topic_id(9), 0): ASKED, (TOPIC_ID, 1): ASKED, (TOPIC_ID, 0): ASKED}
    after, outcomes = alter_partitions(IMAGE, 1, 10, requests, NO_FACTS)
    codes = [one.code if isinstance(one, KafkaError) else 0 for one in outcomes.values()]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert state(after)[2] == (1, 2, 3), "the others are changed"
    assert refusal(mark_deleted(IMAGE, TOPIC), ASKED) == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("request_", "sender", "code"),
    [
        (replace(ASKED, leader_epoch=6), 1, ErrorCode.NOT_CONTROLLER),
        (replace(ASKED, partition_epoch=PARTITION_EPOCH + 1), 1, ErrorCode.NOT_CONTROLLER),
        (replace(ASKED, leader_epoch=4, partition_epoch=PARTITION_EPOCH + 1), 1, ErrorCode.NOT_CONTROLLER),
        (replace(ASKED, leader_epoch=4), 1, ErrorCode.FENCED_LEADER_EPOCH),
        (replace(ASKED, leader_epoch=4), 2, ErrorCode.FENCED_LEADER_EPOCH),
        (replace(ASKED, isr=members(1, 2)), 2, ErrorCode.INVALID_REQUEST),
        (replace(ASKED, partition_epoch=PARTITION_EPOCH - 1), 1, ErrorCode.INVALID_UPDATE_VERSION),
        (replace(ASKED, partition_epoch=PARTITION_EPOCH - 1, isr=members(2, 9)), 1, ErrorCode.INVALID_UPDATE_VERSION),
        (replace(ASKED, isr=members(1, 9)), 1, ErrorCode.INVALID_REQUEST),
        (replace(ASKED, isr=members(2, 3)), 1, ErrorCode.INVALID_REQUEST),
        (replace(ASKED, isr=()), 1, ErrorCode.INVALID_REQUEST),
        (replace(ASKED, isr=members(1, 3, 3)), 1, ErrorCode.INVALID_REQUEST),
        (replace(ASKED, isr=members(1), is_recovering=True), 1, ErrorCode.INVALID_REQUEST),
        (replace(ASKED, isr=(*members(1, 2), BrokerState(3, 9))), 1, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_every_refusal_comes_in_kafkas_order_r54(request_: InSyncRequest, sender: int, code: ErrorCode) -> None:
    assert refusal(IMAGE, request_, sender) == code


def test_an_epoch_that_the_leader_does_not_know_is_not_checked_r53() -> None:
    after, _ = alter(IMAGE, replace(ASKED, isr=(*members(1, 2), BrokerState(3))))
    assert state(after)[2] == (1, 2, 3)


def test_a_member_must_be_online_r54() -> None:
    image = cluster(partition(1, (1,)))
    wanted = replace(ASKED, isr=members(1, 3))
    assert refusal(brokers_gone(image, [3], NO_FACTS), wanted) == ErrorCode.INELIGIBLE_REPLICA
    failed = replicas_offline(image, 3, frozenset([KEY]), frozenset(), NO_FACTS)
    assert refusal(failed, wanted) == ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_that_shuts_down_is_not_added_again_r91() -> None:
    """KIP-841: it still fetches, its leader adds it, and it becomes leader as it dies."""
    image = broker_drains(cluster(partition(1, (1, 2))), 2, NO_FACTS)
    drained = image.topics[TOPIC].partitions[0]
    assert drained.isr == (1,)
    again = InSyncRequest(drained.leader_epoch, drained.partition_epoch, members(1, 2))
    assert refusal(image, again) == ErrorCode.INELIGIBLE_REPLICA


def test_a_delayed_request_does_not_bring_in_a_broker_that_came_back_empty_r92() -> None:
    """KIP-903: the leader saw it caught up in its old registration; it may have lost everything since."""
    image = cluster(partition(1, (1,)))
    delayed = replace(ASKED, isr=members(1, 3))
    assert state(alter(image, delayed)[0])[2] == (1, 3)
    restarted = broker_ready(image, arrival(3, epoch=11, lost=[KEY]), NO_FACTS)
    assert restarted.topics[TOPIC].partitions[0].partition_epoch == PARTITION_EPOCH, "nothing else would stop it"
    assert refusal(restarted, delayed) == ErrorCode.INELIGIBLE_REPLICA


def test_a_recovering_leader_says_that_it_goes_on_and_then_others_follow_r46() -> None:
    image = cluster(replace(partition(1, (1,)), is_recovering=True))
    assert refusal(image, replace(ASKED, is_recovering=True)) == ErrorCode.INVALID_REQUEST
    after, _ = alter(image, replace(ASKED, isr=members(1)))
    assert not after.topics[TOPIC].partitions[0].is_recovering
    assert after.topics[TOPIC].partitions[0].partition_epoch == PARTITION_EPOCH + 1
    both, _ = alter(image, ASKED)
    assert state(both)[2] == (1, 2, 3)


def test_a_leader_that_drains_hands_over_to_the_member_it_adds_r54() -> None:
    image = broker_drains(cluster(partition(1, (1,))), 1, NO_FACTS)
    after, outcome = alter(image, replace(ASKED, isr=members(1, 3)))
    assert isinstance(outcome, KafkaError)
    assert outcome.code == ErrorCode.NEW_LEADER_ELECTED
    assert state(after) == (3, 6, (3,))
    assert after.topics[TOPIC].partitions[0].partition_epoch == PARTITION_EPOCH + 1
