"""The image in ZooKeeper's entries, on the one in memory and on a real one."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings

from lamina.image.changes import (
    add_partitions,
    create_topic,
    mark_deleted,
    mark_made,
    register_broker,
    remove_topic,
    set_acls,
    set_configs,
    set_controller,
    set_feature,
    set_partitions,
    set_quotas,
    set_scram_credentials,
)
from lamina.image.image import NO_CONTROLLER, ConfigResource, Image, ResourceType
from lamina.image.topic import Partition
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern
from lamina.security.acls import ResourceType as AclResourceType
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.store import interface
from lamina.store.cluster_identity import cluster_id
from lamina.store.interface import (
    LARGEST_BYTES,
    ClusterStore,
    Create,
    Delete,
    OutcomeUnknown,
    Set,
    StoreConflict,
    StoreError,
    TooLarge,
)
from lamina.store.membership import CONTROLLER_EPOCH, Membership, Tenure
from lamina.store.znodes import ControllerMoved, ZnodeMetadata
from tests.examples import examples
from tests.image.steps import CLUSTER_ID, Step, broker, take, topic_id, walks
from tests.store.ensembles import Ensemble
from tests.store.memory_zookeeper import MemorySession, MemoryZooKeeper
from tests.store.test_membership import registered

TOPIC = ConfigResource(ResourceType.TOPIC, "t")
NEW = Partition((1, 2), leader=-1, leader_epoch=-1, isr=(), partition_epoch=-1)


class Controller:
    """A broker in office, with the image that it has written last."""

    def __init__(self, store: ClusterStore, node_id: int = 1) -> None:
        self.store = store
        self.membership: Membership = registered(store, node_id)
        tenure = self.membership.elect()
        assert tenure is not None
        self.tenure: Tenure = tenure
        cluster_id(store, CLUSTER_ID)
        self.metadata = ZnodeMetadata(store)
        self.image = self.metadata.load()

    def save(self, image: Image) -> None:
        self.metadata.write(self.image, image, self.tenure)
        self.image = image

    def value(self, path: str) -> object:
        found = self.store.get(path)
        return None if found is None else json.loads(found.value or b"null")


def stored(image: Image) -> Image:
    """What a store keeps of an image: all but who is alive."""
    return replace(image, brokers={}, controller_id=NO_CONTROLLER)


def load(store: ClusterStore) -> Image:
    return ZnodeMetadata(store).load()


# Kafka's forms (zookeeper.md 6.1)


def test_a_topic_is_written_as_kafka_writes_it(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    image = create_topic(controller.image, "t", bytes(range(16)), [(1, 2), (2, 1)])
    controller.save(set_configs(image, TOPIC, {"retention.ms": "1"}))
    assert controller.value("/brokers/topics/t") == {
        "version": 3,
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "partitions": {"0": [1, 2], "1": [2, 1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert controller.value("/brokers/topics/t/partitions/1/state") == {
        "version": 1,
        "leader": 2,
        "leader_epoch": 0,
        "controller_epoch": 1,
        "isr": [2, 1],
    }
    assert controller.value("/config/topics/t") == {"version": 1, "config": {"retention.ms": "1"}}
    controller.save(mark_deleted(controller.image, "t"))
    assert controller.store.children("/admin/delete_topics") == ["t"]


def test_a_reassignment_is_written_as_kafka_writes_it_r51(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1, 2), (2, 1)]))
    partition = controller.image.topics["t"].partitions[1]
    begun = replace(partition, replicas=(3, 2, 1), adding=(3,), removing=(2, 1))
    controller.save(set_partitions(controller.image, {("t", 1): begun}))
    value = controller.value("/brokers/topics/t")
    assert isinstance(value, dict)
    assert value["partitions"] == {"0": [1, 2], "1": [3, 2, 1]}
    assert (value["adding_replicas"], value["removing_replicas"]) == ({"1": [3]}, {"1": [2, 1]})
    assert load(controller.store) == stored(controller.image)
    controller.save(set_partitions(controller.image, {("t", 1): partition}))
    assert load(controller.store) == stored(controller.image)


def test_a_topic_of_an_older_kafka_is_not_being_reassigned(ensemble: Ensemble) -> None:
    """Its entry has no such fields."""
    controller = Controller(ensemble.connect())
    older = b'{"version":1,"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"0":[1,2]}}'
    controller.store.transact([Create("/brokers/topics/t", older)])
    assert load(controller.store).topics["t"].partitions == (NEW,)


def test_only_a_leader_that_recovers_is_written_with_that_state(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1, 2)]))
    partition = controller.image.topics["t"].partitions[0]
    recovering = replace(partition, leader=2, leader_epoch=1, isr=(2,), is_recovering=True)
    controller.save(set_partitions(controller.image, {("t", 0): recovering}))
    state = controller.value("/brokers/topics/t/partitions/0/state")
    assert isinstance(state, dict)
    assert state["leader_recovery_state"] == 1
    assert load(controller.store).topics == controller.image.topics


def test_access_rules_are_written_as_kafka_writes_them(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    allowed = AccessRule("User:alice", "*", Operation.DESCRIBE_CONFIGS, Permission.ALLOW)
    denied = AccessRule("User:bob", "10.0.0.1", Operation.READ, Permission.DENY)
    literal = ResourcePattern(AclResourceType.TOPIC, "t", PatternType.LITERAL)
    prefixed = ResourcePattern(AclResourceType.TRANSACTIONAL_ID, "t", PatternType.PREFIXED)
    controller.save(set_acls(controller.image, {literal: frozenset([denied, allowed]), prefixed: frozenset([allowed])}))
    first = {"principal": "User:alice", "permissionType": "Allow", "operation": "DescribeConfigs", "host": "*"}
    second = {"principal": "User:bob", "permissionType": "Deny", "operation": "Read", "host": "10.0.0.1"}
    assert controller.value("/kafka-acl/Topic/t") == {"version": 1, "acls": [first, second]}
    extended = controller.value("/kafka-acl-extended/prefixed/TransactionalId/t")
    assert extended == {"version": 1, "acls": [first]}
    controller.save(set_acls(controller.image, {literal: frozenset()}))
    assert controller.store.children("/kafka-acl/Topic") == []
    assert load(controller.store) == stored(controller.image)


def test_quotas_and_scram_credentials_of_a_user_are_one_entry_as_kafka_has_them(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    alice: QuotaEntity = (("user", "alice"),)
    both: QuotaEntity = (("client-id", None), ("user", "alice"))
    credential = ScramCredential(b"s", b"k", b"v", 4096)
    image = set_scram_credentials(controller.image, {"alice": {ScramMechanism.SHA_512: credential}})
    controller.save(set_quotas(image, {alice: {"producer_byte_rate": 1024.0}, both: {"request_percentage": 12.5}}))
    assert controller.value("/config/users/alice") == {
        "version": 1,
        "config": {
            "producer_byte_rate": "1024.0",
            "SCRAM-SHA-512": "salt=cw==,stored_key=aw==,server_key=dg==,iterations=4096",
        },
    }
    nested = controller.value("/config/users/alice/clients/<default>")
    assert nested == {"version": 1, "config": {"request_percentage": "12.5"}}
    controller.save(set_scram_credentials(set_quotas(controller.image, {alice: {}}), {"alice": {}}))
    assert controller.value("/config/users/alice") == {"version": 1, "config": {}}, "others are below it"
    assert load(controller.store) == stored(controller.image)


@pytest.mark.parametrize("name", ["g", ".", "..", "a/b", "ü %2F<default>", "x" * 300])
def test_configs_of_groups_have_any_name(ensemble: Ensemble, name: str) -> None:
    controller = Controller(ensemble.connect())
    group = ConfigResource(ResourceType.GROUP, name)
    controller.save(set_configs(controller.image, group, {"consumer.session.timeout.ms": "1"}))
    assert load(controller.store).configs == {group: {"consumer.session.timeout.ms": "1"}}


def test_configs_of_one_broker_and_of_all(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    one, every = ConfigResource(ResourceType.BROKER, "7"), ConfigResource(ResourceType.BROKER, "")
    controller.save(set_configs(set_configs(controller.image, one, {"a": "1"}), every, {"b": "2"}))
    assert controller.store.children("/config/brokers") == ["7", "<default>"]
    assert load(controller.store).configs == {one: {"a": "1"}, every: {"b": "2"}}


# Reading what was written


def walk(store: ClusterStore, steps: list[Step]) -> None:
    controller = Controller(store)
    for step in steps:
        controller.save(take(controller.image, step))
    assert load(store) == stored(controller.image)
    _check_partition_epochs(store, controller.image)


def _check_partition_epochs(store: ClusterStore, image: Image) -> None:
    """The version of a state is the partition epoch, also after changes that grew it by more than one."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            found = store.get(f"/brokers/topics/{topic.name}/partitions/{index}/state")
            assert found is not None
            assert found.version == partition.partition_epoch


@settings(max_examples=examples(150), deadline=None)
@given(walks)
def test_the_store_holds_the_image_after_every_walk(steps: list[Step]) -> None:
    walk(MemoryZooKeeper().connect(), steps)


def test_a_walk_on_a_real_zookeeper(ensemble: Ensemble) -> None:
    steps = [
        (name, number, 3 * number + 1) for number, name in enumerate(["create"] * 4 + ["mark made", "move leader"])
    ]
    steps += [("begin epochs", 1, 40), ("recreate", 1, 41), ("add partitions", 0, 42), ("mark deleted", 2, 43)]
    steps += [("set configs", 1, 44), ("set feature", 1, 46), ("remove", 2, 47), ("set configs", 0, 50)]
    walk(ensemble.connect(), steps)


def test_several_changes_of_a_partition_are_written_in_one_step(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    image = create_topic(controller.image, "t", topic_id(1), [(1, 2)])
    for epoch in (1, 2, 3):
        partition = image.topics["t"].partitions[0]
        image = set_partitions(image, {("t", 0): replace(partition, leader_epoch=epoch)})
    controller.save(image)
    assert image.topics["t"].partitions[0].partition_epoch == 3
    _check_partition_epochs(controller.store, image)


def test_a_partition_without_a_state_is_new_and_gets_one(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    image = create_topic(controller.image, "t", topic_id(1), [(1, 2), (1, 2)])
    new = replace(image.topics["t"], partitions=(NEW, image.topics["t"].partitions[1]))
    controller.save(replace(image, topics={"t": new}))
    assert load(controller.store).topics["t"].partitions == new.partitions
    elected = replace(NEW, leader=1, leader_epoch=0, isr=(1, 2))
    controller.save(set_partitions(controller.image, {("t", 0): elected}))
    assert load(controller.store) == stored(controller.image)
    _check_partition_epochs(controller.store, controller.image)


def test_a_partition_that_was_half_made_gets_its_state_and_can_be_deleted(ensemble: Ensemble) -> None:
    """Kafka makes a partition and its state one after the other."""
    store = ensemble.connect()
    controller = Controller(store)
    image = create_topic(controller.image, "t", topic_id(1), [(1, 2)] * 2)
    controller.save(replace(image, topics={"t": replace(image.topics["t"], partitions=(NEW, NEW))}))
    store.transact([Create(f"/brokers/topics/t/partitions/{index}", b"") for index in range(2)])
    controller.image = controller.metadata.load()
    controller.save(set_partitions(controller.image, {("t", 0): replace(NEW, leader=1, leader_epoch=0, isr=(1, 2))}))
    assert load(store) == stored(controller.image)
    controller.save(remove_topic(controller.image, "t"))
    assert store.children("/brokers/topics") == []


def test_who_is_alive_is_not_written(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    before = {path: entry.version for path, entry in controller.store.below("").items()}
    image = set_controller(register_broker(controller.image, broker(5)), 5)
    assert controller.metadata.write(controller.image, image, controller.tenure).brokers == {5: broker(5)}
    assert {path: entry.version for path, entry in controller.store.below("").items()} == before


def test_a_deletion_is_recorded_with_the_end_of_the_topic_and_forgotten_when_all_know(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1, 2)]))
    controller.save(replace(remove_topic(controller.image, "t"), deletions={topic_id(1): (2,)}))
    assert load(controller.store) == stored(controller.image)
    controller.save(replace(controller.image, deletions={}))
    assert load(controller.store) == stored(controller.image)


def test_where_directories_were_made_does_not_pass_to_another_topic_of_that_name(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(mark_made(create_topic(controller.image, "t", topic_id(1), [(1, 2)]), 1, [("t", 0)]))
    image = create_topic(remove_topic(controller.image, "t"), "t", topic_id(2), [(1, 2)])
    controller.save(image)
    assert load(controller.store).topics["t"].partitions[0].made_on == ()


def test_configs_that_a_deleted_topic_left_do_not_pass_to_another(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    controller = Controller(store)
    store.transact([Create("/config/topics/t", b'{"version":1,"config":{"retention.ms":"1"}}')])
    controller.image = controller.metadata.load()
    assert controller.image.configs == {}
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1,)]))
    assert load(store).configs == {}


def test_features_and_the_controllers_epoch_are_read(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(set_feature(controller.image, "transaction.version", 2))
    image = load(controller.store)
    assert image.features.levels == {"transaction.version": 2}
    assert image.controller_epoch == controller.tenure.controller_epoch == 1


# Fencing


def test_a_controller_that_was_replaced_writes_nothing(ensemble: Ensemble) -> None:
    """R43: every write checks the epoch in its own transaction."""
    stale = Controller(ensemble.connect())
    stale.membership.resign(stale.tenure)
    current = Controller(ensemble.connect(), node_id=2)
    current.save(create_topic(current.image, "t", topic_id(1), [(1, 2)]))
    with pytest.raises(ControllerMoved, match=r"^the tenure of controller epoch 1 is over$"):
        stale.save(create_topic(stale.image, "s", topic_id(2), [(1, 2)]))
    assert load(current.store) == stored(current.image)


def test_after_a_failed_write_the_image_is_loaded_again_first(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    controller = Controller(store)
    store.transact([Create("/config/topics/t", b"{}")])
    image = set_configs(create_topic(controller.image, "t", topic_id(1), [(1,)]), TOPIC, {"a": "1"})
    with pytest.raises(StoreConflict):
        controller.save(image)
    with pytest.raises(StoreError, match="has to be loaded again"):
        controller.save(image)
    store.transact([Set("/config/topics/t", b'{"config":{}}', 0)])
    controller.image = controller.metadata.load()
    controller.save(image)
    assert load(store) == stored(image)


def test_a_partition_epoch_never_goes_back(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1,)]))
    topic = controller.image.topics["t"]
    back = replace(topic, partitions=(replace(topic.partitions[0], partition_epoch=-1),))
    with pytest.raises(ValueError, match="t-0 goes back from 0 to -1"):
        controller.save(replace(controller.image, topics={"t": back}))


# Many transactions


class CountingSession(MemorySession):
    """Counts transactions, and fails for good after some of them."""

    transactions: list[int]
    may_do = 10**9

    def transact(self, operations: object) -> None:
        if len(self.transactions) >= self.may_do:
            raise OutcomeUnknown("the connection was lost")
        super().transact(operations)  # type: ignore[arg-type]
        self.transactions.append(sum(map(interface.size_bytes, operations)))  # type: ignore[call-overload]


def counting_controller() -> tuple[Controller, CountingSession]:
    session = CountingSession(MemoryZooKeeper(), 6000)
    session.transactions = []
    controller = Controller(session)
    session.transactions.clear()
    return controller, session


def test_a_large_change_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.store.znodes.TRANSACTION_BYTES", 5000)
    controller, session = counting_controller()
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1, 2)] * 100))
    assert len(session.transactions) > 5
    assert max(session.transactions) < 5000 + 200
    assert load(session) == stored(controller.image)


def test_what_no_transaction_takes_is_refused_before_anything_is_written(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1,)]))
    small = set_configs(controller.image, TOPIC, {"a": "1"})
    large = set_configs(create_topic(controller.image, "s", topic_id(2), [(1,)]), TOPIC, {"a": "1" * LARGEST_BYTES})
    with pytest.raises(TooLarge, match=r"^/config/topics/t would take \d+ bytes in ZooKeeper, and 500000"):
        controller.save(large)
    assert load(controller.store) == stored(controller.image)
    controller.save(small)
    assert load(controller.store) == stored(small)


@pytest.mark.parametrize("transactions", range(5))
def test_a_creation_that_stops_anywhere_leaves_new_partitions_and_one_epoch_for_all(
    monkeypatch: pytest.MonkeyPatch, transactions: int
) -> None:
    monkeypatch.setattr("lamina.store.znodes.TRANSACTION_BYTES", 2000)
    controller, session = counting_controller()
    image = create_topic(controller.image, "t", topic_id(1), [(1, 2)] * 30)
    session.may_do = transactions
    with pytest.raises(OutcomeUnknown):
        controller.save(set_configs(image, TOPIC, {"a": "1"}))
    session.may_do = 10**9
    found = load(session)
    if not transactions:
        assert found == stored(controller.image)
        return
    topic = found.topics["t"]
    made = [partition.partition_epoch for partition in topic.partitions]
    assert made == sorted(made, reverse=True)
    assert set(made) <= {0, -1}
    assert found.configs == {TOPIC: {"a": "1"}}
    # The next controller goes on from there.
    controller.image = controller.metadata.load()
    missing = {("t", index): image.topics["t"].partitions[index] for index, epoch in enumerate(made) if epoch < 0}
    controller.save(set_partitions(controller.image, missing))
    assert load(session).topics == image.topics


@pytest.mark.parametrize("transactions", range(8))
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_reassignment_that_stops_anywhere_leaves_nobody_in_sync_who_is_not_assigned(
    monkeypatch: pytest.MonkeyPatch, is_reversed: bool, transactions: int
) -> None:
    """R96: replicas that come are assigned before they are in sync, those that go after they were."""
    monkeypatch.setattr("lamina.store.znodes.TRANSACTION_BYTES", 2000)
    controller, session = counting_controller()
    steps = [
        Partition((1, 2), 1, 0, (1, 2)),
        Partition((3, 1, 2), 1, 0, (1, 2), adding=(3,), removing=(2,)),
        Partition((3, 1), 1, 1, (1, 3)),
    ]
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1, 2)] * 30))
    begun, completed = reversed(steps[:2]) if is_reversed else steps[1:]
    controller.save(set_partitions(controller.image, {("t", index): begun for index in range(30)}))
    session.may_do = transactions
    with suppress(OutcomeUnknown):
        last = {("t", index): replace(completed, leader_epoch=5) for index in range(30)}
        controller.save(set_partitions(controller.image, last))
    session.may_do = 10**9
    for partition in load(session).topics["t"].partitions:
        assert set(partition.isr) <= set(partition.replicas)
        assert partition.is_reassigning == (partition.replicas == steps[1].replicas)


@pytest.mark.parametrize("transactions", range(5))
def test_a_deletion_that_stops_anywhere_is_finished_by_the_next(
    monkeypatch: pytest.MonkeyPatch, transactions: int
) -> None:
    monkeypatch.setattr("lamina.store.znodes.TRANSACTION_BYTES", 2000)
    controller, session = counting_controller()
    empty = controller.image
    image = mark_made(create_topic(empty, "t", topic_id(1), [(1, 2)] * 30), 1, [("t", 3)])
    controller.save(set_configs(image, TOPIC, {"a": "1"}))
    controller.save(mark_deleted(controller.image, "t"))
    session.transactions.clear()
    session.may_do = transactions
    gone = replace(remove_topic(controller.image, "t"), deletions={topic_id(1): (2,)})
    try:
        controller.save(gone)
    except OutcomeUnknown:
        session.may_do = 10**9
        controller.image = controller.metadata.load()
        assert controller.image.topics["t"].is_being_deleted
        assert controller.image.deletions == {}
        controller.save(replace(remove_topic(controller.image, "t"), deletions={topic_id(1): (2,)}))
    assert load(session) == replace(stored(empty), deletions={topic_id(1): (2,)})
    assert not [path for path in session.below("") if "/t" in path.replace("/topics", "")]


# What cannot be read


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/brokers/topics/t", b"{}"),
        ("/brokers/topics/t", b"\xff"),
        ("/brokers/topics/t", b'{"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"1":[1]}}'),
        ("/brokers/topics/t", b'{"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"0":[]}}'),
        ("/brokers/topics/t", b'{"topic_id":"AAE","partitions":{"0":[1]}}'),
        (
            "/brokers/topics/t",
            b'{"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"0":[1]},"adding_replicas":{"0":["1"]}}',
        ),
        ("/brokers/topics/t/partitions/0/state", b"[]"),
        ("/brokers/topics/t/partitions/0/state", b'{"leader":"1","leader_epoch":0,"isr":[1]}'),
        ("/config/topics/t", b'{"config":{"a":1}}'),
        ("/config/brokers/1", b"{}"),
        ("/lamina/topics/t", b'{"topic_id":1}'),
        ("/lamina/deletions/x", b"[]"),
        ("/lamina/features", b"[]"),
        (CONTROLLER_EPOCH, b"x"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(path: str, value: bytes) -> None:
    store = MemoryZooKeeper().connect()
    controller = Controller(store)
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1,)]))
    found = store.get(path)
    store.transact([Create(path, value) if found is None else Set(path, value, found.version)])
    with pytest.raises(StoreError, match=rf"^{path} in the metadata store cannot be read: "):
        load(store)


def test_a_store_without_a_cluster_is_refused() -> None:
    store = MemoryZooKeeper().connect()
    Controller(store)
    store.transact([Delete("/cluster/id", 0)])
    with pytest.raises(StoreError, match="there is no cluster at this place in ZooKeeper"):
        load(store)


def test_partitions_that_are_added_follow_the_topics_entry(ensemble: Ensemble) -> None:
    controller = Controller(ensemble.connect())
    controller.save(create_topic(controller.image, "t", topic_id(1), [(1,)]))
    controller.save(add_partitions(controller.image, "t", [(2,), (1,)]))
    assert load(controller.store) == stored(controller.image)
