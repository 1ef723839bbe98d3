from lamina.image import changes
from lamina.image.diff import Changes, diff
from lamina.image.image import ConfigResource, Image, ResourceType
from tests.image.steps import CLUSTER_ID, broker, topic_id

EMPTY = Image(CLUSTER_ID)
ORDERS = changes.create_topic(EMPTY, "orders", topic_id(1), [(0,), (0,)])


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


def test_a_topic_has_gone_once_however_its_deletion_is_seen() -> None:
    marked = changes.mark_deleted(ORDERS, "orders")
    removed = changes.remove_topic(marked, "orders")
    assert [one.name for one in diff(ORDERS, marked).topics_gone] == ["orders"]
    assert diff(marked, removed).topics_gone == (), "it went before"
    assert [one.name for one in diff(ORDERS, removed).topics_gone] == ["orders"], "what lay between was not seen"
    again = changes.create_topic(removed, "orders", topic_id(2), [(1,)])
    assert [one.name for one in diff(ORDERS, again).topics_gone] == ["orders"], "a new one by its name is another"


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
