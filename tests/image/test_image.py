import pytest

from lamina.errors import UnknownTopicId, UnknownTopicOrPartition
from lamina.image.changes import create_topic, mark_deleted
from lamina.image.image import ConfigResource, Image, ResourceType
from tests.image.steps import CLUSTER_ID, topic_id

IMAGE = create_topic(
    create_topic(Image(CLUSTER_ID), "orders", topic_id(1), [(0,)]), "__consumer_offsets", topic_id(2), [(0,)]
)


def test_a_topic_is_found_by_name_and_by_id() -> None:
    assert IMAGE.topic("orders") is IMAGE.topic_with_id(topic_id(1))
    assert IMAGE.partition("orders", 0).leader == 0


def test_what_is_not_there_gets_kafkas_error() -> None:
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic 'none'"):
        IMAGE.topic("none")
    with pytest.raises(UnknownTopicId, match=topic_id(9).hex()):
        IMAGE.topic_with_id(topic_id(9))


@pytest.mark.parametrize("index", [-1, 1])
def test_a_partition_outside_the_topic_is_unknown(index: int) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="has 1 partitions"):
        IMAGE.partition("orders", index)


def test_a_topic_that_is_being_deleted_is_unknown_to_clients() -> None:
    image = mark_deleted(IMAGE, "orders")
    with pytest.raises(UnknownTopicOrPartition):
        image.partition("orders", 0)
    with pytest.raises(UnknownTopicId):
        image.topic_with_id(topic_id(1))


def test_internal_topics_are_known_by_name() -> None:
    assert IMAGE.topic("__consumer_offsets").is_internal
    assert not IMAGE.topic("orders").is_internal


def test_a_resource_on_which_nothing_is_set_has_no_configs() -> None:
    assert IMAGE.configs_of(ConfigResource(ResourceType.BROKER, "")) == {}
