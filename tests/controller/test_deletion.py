"""A deleted topic goes when no live broker has any of it; those that are away are told when they come back (R50)."""

from dataclasses import replace

import pytest

from lamina.controller.brokers import broker_ready, brokers_gone, replicas_offline, take_over
from lamina.controller.deletion import deletion_reported, finish_deletions, forget_holder
from lamina.controller.election import NO_FACTS
from lamina.errors import TopicAlreadyExists, UnknownTopicOrPartition
from lamina.image.changes import add_partitions, create_topic, mark_deleted, register_broker
from lamina.image.image import Image
from lamina.image.topic_names import check_new_topic_name
from tests.controller.cluster import KEY, TOPIC, TOPIC_ID, arrival, cluster, partition
from tests.image.steps import topic_id

MARKED = mark_deleted(cluster(partition(1, (1, 2), replicas=(1, 2)), partition(2, (2, 3), replicas=(2, 3))), TOPIC)


def test_a_topic_goes_with_the_last_report() -> None:
    image = deletion_reported(MARKED, 1, [TOPIC_ID])
    assert image.deletions == {TOPIC_ID: (2, 3)}
    image = deletion_reported(image, 1, [TOPIC_ID])
    image = deletion_reported(image, 3, [TOPIC_ID])
    assert TOPIC in image.topics
    image = deletion_reported(image, 2, [TOPIC_ID])
    assert (image.topics, image.topic_names, image.deletions) == ({}, {}, {})


def test_a_report_of_what_is_not_being_deleted_changes_nothing() -> None:
    image = cluster(partition(1, (1, 2)))
    assert deletion_reported(image, 1, [TOPIC_ID, topic_id(9)]) is image
    assert deletion_reported(MARKED, 9, [TOPIC_ID]) is MARKED


def test_brokers_that_are_away_are_remembered_until_they_report() -> None:
    image = brokers_gone(MARKED, [3], NO_FACTS)
    image = deletion_reported(deletion_reported(image, 1, [TOPIC_ID]), 2, [TOPIC_ID])
    assert TOPIC not in image.topics
    assert image.deletions == {TOPIC_ID: (3,)}
    image = create_topic(image, TOPIC, topic_id(2), [(3,)])
    image = broker_ready(image, arrival(3, 11), NO_FACTS)
    assert image.deletions == {TOPIC_ID: (3,)}
    image = deletion_reported(image, 3, [TOPIC_ID])
    assert image.deletions == {}
    assert image.topics[TOPIC].id == topic_id(2), "the new one under its name stays"


def test_a_broker_that_goes_while_it_is_waited_for_is_waited_for_no_longer() -> None:
    image = deletion_reported(deletion_reported(MARKED, 1, [TOPIC_ID]), 2, [TOPIC_ID])
    image = brokers_gone(image, [3], NO_FACTS)
    assert TOPIC not in image.topics
    assert image.deletions == {TOPIC_ID: (3,)}


def test_a_topic_whose_brokers_are_all_away_goes_at_once() -> None:
    image = mark_deleted(brokers_gone(cluster(partition(1, (1,), replicas=(1,))), [1], NO_FACTS), TOPIC)
    image = finish_deletions(image)
    assert TOPIC not in image.topics
    assert image.deletions == {TOPIC_ID: (1,)}
    assert finish_deletions(image) is image


def test_the_next_controller_goes_on_with_a_deletion_r42() -> None:
    image = deletion_reported(MARKED, 1, [TOPIC_ID])
    image = take_over(image, 1, 2, [arrival(1), arrival(2)], NO_FACTS)
    assert image.deletions == {TOPIC_ID: (2, 3)}
    image = deletion_reported(image, 2, [TOPIC_ID])
    assert (image.topics, image.deletions) == ({}, {TOPIC_ID: (3,)})


def test_a_failed_directory_is_not_waited_for_and_not_forgotten() -> None:
    failed = replace(MARKED.brokers[1], offline=frozenset([KEY]))
    image = register_broker(MARKED, failed)
    image = deletion_reported(deletion_reported(image, 2, [TOPIC_ID]), 3, [TOPIC_ID])
    assert (image.topics, image.deletions) == ({}, {TOPIC_ID: (1,)})


def test_a_broker_with_some_of_it_in_a_failed_directory_is_not_waited_for_and_not_forgotten() -> None:
    image = replace_partitions(MARKED, 2)
    failed = replace(image.brokers[1], offline=frozenset([(TOPIC, 2)]))
    image = register_broker(image, failed)
    assert deletion_reported(image, 1, [TOPIC_ID]) is image, "what is in the failed directory is still there"
    image = deletion_reported(deletion_reported(image, 2, [TOPIC_ID]), 3, [TOPIC_ID])
    assert (image.topics, image.deletions) == ({}, {TOPIC_ID: (1,)})


def test_a_directory_that_fails_meanwhile_ends_the_wait() -> None:
    image = deletion_reported(deletion_reported(MARKED, 2, [TOPIC_ID]), 3, [TOPIC_ID])
    assert image.topics
    image = replicas_offline(image, 1, frozenset([KEY]), frozenset(), NO_FACTS)
    assert (image.topics, image.deletions) == ({}, {TOPIC_ID: (1,)})


def replace_partitions(image: Image, count: int) -> Image:
    """The same topic with so many partitions."""
    topic = image.topics[TOPIC]
    return replace(image, topics={TOPIC: replace(topic, partitions=topic.partitions * count)})


def test_its_name_is_taken_and_it_cannot_grow_meanwhile() -> None:
    with pytest.raises(TopicAlreadyExists, match="still being deleted"):
        check_new_topic_name(MARKED, TOPIC)
    with pytest.raises(UnknownTopicOrPartition):
        add_partitions(MARKED, TOPIC, [(1,)])


def test_who_does_not_come_back_is_neither_waited_for_nor_remembered_r73() -> None:
    image = deletion_reported(deletion_reported(MARKED, 1, [TOPIC_ID]), 2, [TOPIC_ID])
    assert forget_holder(image, 3).topics == {}
    assert forget_holder(image, 1) is image, "it has reported"
    assert forget_holder(MARKED, 3).deletions == {TOPIC_ID: (1, 2)}
    away = brokers_gone(image, [3], NO_FACTS)
    assert away.deletions == {TOPIC_ID: (3,)}
    assert forget_holder(away, 3).deletions == {}
