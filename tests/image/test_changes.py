import copy

import pytest
from hypothesis import given

from lamina.errors import UnknownTopicOrPartition
from lamina.image import changes
from lamina.image.image import ConfigResource, Features, Image, ResourceType
from lamina.image.topic import Partition, Topic
from lamina.settings.topic_config import check_overrides
from tests.image.steps import CLUSTER_ID, Step, broker, take, topic_id, walk, walks

EMPTY = Image(CLUSTER_ID)
ORDERS = changes.create_topic(EMPTY, "orders", topic_id(1), [(0,), (0,)])
ORDERS_CONFIGS = ConfigResource(ResourceType.TOPIC, "orders")


def test_a_new_topic_is_led_by_its_preferred_replica_and_made_nowhere() -> None:
    image = changes.create_topic(EMPTY, "t", topic_id(7), [(2, 0)])
    assert image.topics["t"] == Topic("t", topic_id(7), (Partition((2, 0), 2, 0, (2, 0), made_on=()),))
    assert image.topic_names == {topic_id(7): "t"}


def test_an_adopted_topic_is_made_already_and_keeps_everything_until_a_policy_is_set() -> None:
    image = changes.adopt_topic(EMPTY, "found", topic_id(7), 2, broker_id=4)
    assert image.topics["found"].partitions == (Partition((4,), 4, 0, (4,), made_on=(4,)),) * 2
    configs = image.configs_of(ConfigResource(ResourceType.TOPIC, "found"))
    assert configs == {"cleanup.policy": ""}
    check_overrides(configs)


def test_a_marked_topic_stays_until_it_is_removed_with_its_configs() -> None:
    image = changes.set_configs(ORDERS, ORDERS_CONFIGS, {"retention.ms": "1"})
    image = changes.mark_deleted(image, "orders")
    assert image.topics["orders"].is_being_deleted
    assert changes.remove_topic(image, "orders") == EMPTY


def test_several_topics_are_marked_and_removed_together() -> None:
    image = changes.create_topic(ORDERS, "payments", topic_id(8), [(0,)])
    image = changes.create_topic(image, "kept", topic_id(9), [(0,)])
    image = changes.mark_deleted(image, "orders", "payments")
    assert [topic.name for topic in image.topics.values() if topic.is_being_deleted] == ["orders", "payments"]
    assert changes.remove_topic(image, "orders", "payments").topic_names == {topic_id(9): "kept"}


def test_a_topic_that_is_not_there_cannot_be_marked_or_grow() -> None:
    with pytest.raises(UnknownTopicOrPartition, match="'none'"):
        changes.mark_deleted(EMPTY, "none")
    with pytest.raises(UnknownTopicOrPartition):
        changes.add_partitions(changes.mark_deleted(ORDERS, "orders"), "orders", [(0,)])


def test_added_partitions_follow_the_old_ones() -> None:
    image = changes.add_partitions(ORDERS, "orders", [(1,)])
    assert [partition.leader for partition in image.topics["orders"].partitions] == [0, 0, 1]


def test_each_start_begins_an_epoch_above_the_image_and_above_the_checkpoint() -> None:
    image = changes.set_leader_epochs(ORDERS, {("orders", 0): 5})
    image = changes.begin_leader_epochs(image, {("orders", 0): 3, ("orders", 1): 8, ("unknown", 0): 99})
    assert [partition.leader_epoch for partition in image.topics["orders"].partitions] == [6, 9]


def test_a_directory_is_marked_made_once_for_each_broker() -> None:
    image = changes.mark_made(ORDERS, 1, [("orders", 1)])
    image = changes.mark_made(image, 0, [("orders", 1)])
    assert [partition.made_on for partition in image.topics["orders"].partitions] == [(), (0, 1)]
    assert changes.mark_made(image, 0, [("orders", 1)]) == image


def test_configs_are_replaced_and_no_configs_leave_nothing() -> None:
    given_configs = {"retention.ms": "1"}
    image = changes.set_configs(ORDERS, ORDERS_CONFIGS, given_configs)
    given_configs["retention.ms"] = "2"
    assert image.configs_of(ORDERS_CONFIGS) == {"retention.ms": "1"}
    assert changes.set_configs(image, ORDERS_CONFIGS, {}) == ORDERS


def test_a_feature_at_level_0_is_no_longer_finalized_and_every_change_counts() -> None:
    image = changes.set_feature(EMPTY, "transaction.version", 2)
    assert image.features == Features({"transaction.version": 2}, 1)
    assert changes.set_feature(image, "transaction.version", 0).features == Features({}, 2)


def test_brokers_come_and_go() -> None:
    image = changes.set_controller(changes.register_broker(EMPTY, broker(3)), 3)
    assert (image.brokers, image.controller_id) == ({3: broker(3)}, 3)
    assert changes.remove_broker(image, 3).brokers == {}


def test_untouched_parts_are_shared() -> None:
    image = changes.set_leader_epochs(changes.create_topic(ORDERS, "t", topic_id(2), [(0,)]), {("t", 0): 4})
    assert image.topics["orders"] is ORDERS.topics["orders"]
    assert image.configs is ORDERS.configs
    assert image.brokers is ORDERS.brokers


@given(walks)
def test_a_change_leaves_the_image_before_it_as_it_was(steps: list[Step]) -> None:
    image = EMPTY
    for step in steps:
        before = copy.deepcopy(image)
        after = take(image, step)
        assert image == before
        image = after


@given(walks)
def test_names_by_id_always_agree_with_the_topics(steps: list[Step]) -> None:
    for image in walk(steps):
        assert image.topic_names == {topic.id: name for name, topic in image.topics.items()}
