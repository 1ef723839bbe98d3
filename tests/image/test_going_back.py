"""What shows that an image is older than another one."""

from dataclasses import replace

from lamina.image.changes import add_partitions, create_topic, mark_made, remove_topic, set_partitions
from lamina.image.going_back import gone_back
from lamina.image.image import Image
from lamina.image.topic import Partition
from tests.image.steps import CLUSTER_ID, topic_id

OLD = create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(1, 2, 3), (2, 3, 1)])


def with_state(image: Image, index: int, **facts: object) -> Image:
    """Another state of a partition, in its next partition epoch."""
    return set_partitions(image, {("t", index): replace(image.topics["t"].partitions[index], **facts)})  # type: ignore[arg-type]


def partition(image: Image, index: int) -> Partition:
    return image.topics["t"].partitions[index]


def test_a_later_image_has_gone_nowhere_back() -> None:
    led = with_state(OLD, 1, leader=3, leader_epoch=1)
    for later in (OLD, led, with_state(led, 1, isr=(3,)), mark_made(OLD, 1, [("t", 0)]), remove_topic(led, "t")):
        assert gone_back(OLD, later) is None


def test_a_leader_epoch_that_went_back_is_named() -> None:
    new = with_state(OLD, 1, leader=3, leader_epoch=4)
    assert gone_back(new, OLD) == "t-1 was at leader epoch 4 and ZooKeeper has it at 0"


def test_an_in_sync_set_of_the_past_is_named_by_its_partition_epoch() -> None:
    new = with_state(OLD, 0, isr=(1,))
    assert gone_back(new, OLD) == "t-0 was at partition epoch 1 and ZooKeeper has it at 0"


def test_two_states_of_one_partition_epoch_are_two_histories() -> None:
    assert gone_back(with_state(OLD, 0, isr=(1,)), with_state(OLD, 0, isr=(1, 2))) == (
        "t-0 is at partition epoch 1 and was in another state in that epoch"
    )


def test_partitions_that_are_missing_are_counted() -> None:
    assert (
        gone_back(add_partitions(OLD, "t", [(1, 2, 3)]), OLD) == "topic t had 3 partitions and ZooKeeper has 2 of them"
    )


def test_another_topic_under_the_name_is_another_topic() -> None:
    new = with_state(OLD, 1, leader=3, leader_epoch=4)
    again = create_topic(remove_topic(new, "t"), "t", topic_id(2), [(1, 2, 3)])
    assert gone_back(new, again) is None
