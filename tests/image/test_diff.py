from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lamina.image import changes
from lamina.image.diff import Changes, diff
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import Topic
from tests.image.steps import CLUSTER_ID, Step, broker, topic_id, walk, walks

EMPTY = Image(CLUSTER_ID)
ORDERS = changes.create_topic(EMPTY, "orders", topic_id(1), [(0,), (0,)])


def apply(old: Image, found: Changes) -> Image:
    """The image that a list of changes leads to, from nothing but the old image and the list."""
    topics: dict[str, Topic] = dict(old.topics)
    for topic in found.topics_deleted:
        del topics[topic.name]
    for topic in found.topics_created:
        assert topic.name not in topics
        topics[topic.name] = topic
    for topic in found.topics_being_deleted:
        topics[topic.name] = replace(topics[topic.name], is_being_deleted=True)
    for changed in found.partitions_changed:
        partitions = list(topics[changed.topic.name].partitions)
        assert partitions[changed.index] == changed.old
        partitions[changed.index] = changed.new
        topics[changed.topic.name] = replace(topics[changed.topic.name], partitions=tuple(partitions))
    for added in found.partitions_added:
        topic = topics[added.topic.name]
        assert len(topic.partitions) == added.indexes.start
        grown = topic.partitions + tuple(added.topic.partitions[index] for index in added.indexes)
        topics[topic.name] = replace(topic, partitions=grown)
    configs = {**old.configs, **found.configs}
    brokers = {**old.brokers, **found.brokers}
    return Image(
        cluster_id=old.cluster_id,
        brokers={broker_id: broker for broker_id, broker in brokers.items() if broker is not None},
        controller_id=old.controller_id if found.controller_id is None else found.controller_id,
        topics=topics,
        topic_names={topic.id: topic.name for topic in topics.values()},
        configs={resource: values for resource, values in configs.items() if values},
        features=found.features or old.features,
    )


@given(walks, st.integers(0, 25))
def test_the_changes_lead_from_the_old_image_to_the_new_one(steps: list[Step], old_index: int) -> None:
    images = [EMPTY, *walk(steps)]
    old, new = images[min(old_index, len(steps))], images[-1]
    found = diff(old, new)
    assert apply(old, found) == new
    assert bool(found) == (old != new)


def test_equal_images_have_no_changes() -> None:
    assert not diff(ORDERS, ORDERS)
    assert not diff(ORDERS, changes.create_topic(EMPTY, "orders", topic_id(1), [(0,), (0,)]))


def test_a_name_with_another_id_is_a_topic_deleted_and_another_created() -> None:
    new = changes.create_topic(changes.remove_topic(ORDERS, "orders"), "orders", topic_id(2), [(0,)])
    found = diff(ORDERS, new)
    assert found.topics_deleted == (ORDERS.topics["orders"],)
    assert found.topics_created == (new.topics["orders"],)
    assert not found.partitions_changed


def test_growing_and_marking_are_told_apart() -> None:
    grown = changes.add_partitions(ORDERS, "orders", [(0,), (0,)])
    assert [added.indexes for added in diff(ORDERS, grown).partitions_added] == [range(2, 4)]
    marked = changes.mark_deleted(ORDERS, "orders")
    assert diff(ORDERS, marked) == Changes(topics_being_deleted=(marked.topics["orders"],))


def test_a_new_epoch_is_a_leader_moved_and_a_made_directory_is_not() -> None:
    begun = changes.begin_leader_epochs(ORDERS, {})
    assert [changed.index for changed in diff(ORDERS, begun).leaders_moved] == [0, 1]
    made = diff(ORDERS, changes.mark_made(ORDERS, 0, [("orders", 1)]))
    assert [changed.index for changed in made.partitions_changed] == [1]
    assert made.leaders_moved == ()


def test_configs_brokers_and_controller_carry_what_is_there_now() -> None:
    resource = ConfigResource(ResourceType.BROKER, "")
    new = changes.set_controller(changes.register_broker(EMPTY, broker(1)), 1)
    new = changes.set_configs(new, resource, {"log.retention.ms": "5"})
    found = diff(EMPTY, new)
    assert found.configs == {resource: {"log.retention.ms": "5"}}
    assert (found.brokers, found.controller_id) == ({1: broker(1)}, 1)
    back = diff(new, EMPTY)
    assert (back.configs, back.brokers, back.controller_id) == ({resource: {}}, {1: None}, -1)
