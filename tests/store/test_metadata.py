import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.image.changes import (
    begin_leader_epochs,
    create_topic,
    mark_deleted,
    register_broker,
    remove_topic,
    set_configs,
)
from lamina.image.image import NO_CONTROLLER, ConfigResource, Image, ResourceType
from lamina.image.topic import Topic, new_partition
from lamina.store.interface import Create, Delete, Set, StoreConflict, StoreError
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore
from tests.examples import examples
from tests.image.steps import CLUSTER_ID, Step, broker, take, topic_id, walks
from tests.store.processes import running, temporary_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(str(tmp_path / "metadata.db"))) as opened:
        yield opened


def load(store: SqliteStore) -> Image:
    return MetadataStore(store, "another cluster's id!!").image


def test_a_new_store_keeps_the_first_cluster_id(store: SqliteStore) -> None:
    assert MetadataStore(store, CLUSTER_ID).image == Image(CLUSTER_ID)
    assert load(store).cluster_id == CLUSTER_ID


@settings(max_examples=examples(50), deadline=None)
@given(walks)
def test_the_store_holds_the_image_after_every_change(steps: list[Step]) -> None:
    with temporary_store() as store:
        metadata = MetadataStore(store, CLUSTER_ID)
        for step in steps:
            metadata.save(take(metadata.image, step))
            assert load(store) == metadata.image


@settings(max_examples=20, deadline=None)
@given(walks, st.integers(0, 25))
def test_a_restart_between_changes_loses_only_who_is_alive(every: list[Step], restart_at: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/metadata.db"
        image = Image(CLUSTER_ID)
        for steps in (every[:restart_at], every[restart_at:], []):
            with closing(SqliteStore(path)) as store:
                metadata = MetadataStore(store, CLUSTER_ID)
                assert metadata.image == replace(image, brokers={}, controller_id=NO_CONTROLLER)
                for step in steps:
                    metadata.save(take(metadata.image, step))
                image = metadata.image


def test_many_changes_are_saved_in_one_step_and_reported(store: SqliteStore) -> None:
    metadata = MetadataStore(store, CLUSTER_ID)
    metadata.save(create_topic(metadata.image, "old", topic_id(1), [(0,)]))
    image = create_topic(remove_topic(metadata.image, "old"), "old", topic_id(2), [(0,), (0,)])
    image = register_broker(mark_deleted(image, "old"), broker(0))
    changes = metadata.save(image)
    assert [topic.id for topic in changes.topics_deleted] == [topic_id(1)]
    assert [topic.id for topic in changes.topics_created] == [topic_id(2)]
    assert load(store) == image
    assert not metadata.save(image)


def test_a_conflict_leaves_image_and_store_as_they_were(store: SqliteStore) -> None:
    first, second = MetadataStore(store, CLUSTER_ID), MetadataStore(store, CLUSTER_ID)
    first.save(create_topic(first.image, "t", topic_id(1), [(0,)]))
    before = second.image
    with pytest.raises(StoreConflict, match="/topics/t in"):
        second.save(create_topic(create_topic(before, "s", topic_id(3), [(0,)]), "t", topic_id(2), [(0,)]))
    assert second.image is before
    assert load(store) == first.image


def test_a_brokers_configs_survive_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")
    one, every = ConfigResource(ResourceType.BROKER, "0"), ConfigResource(ResourceType.BROKER, "")
    with closing(SqliteStore(path)) as store:
        metadata = MetadataStore(store, CLUSTER_ID)
        metadata.save(set_configs(metadata.image, one, {"log.retention.ms": "1"}))
        metadata.save(set_configs(metadata.image, every, {"log.retention.ms": "2"}))
    with closing(SqliteStore(path)) as store:
        assert load(store).configs == {one: {"log.retention.ms": "1"}, every: {"log.retention.ms": "2"}}


def test_a_newer_format_is_refused_with_a_sentence(store: SqliteStore) -> None:
    MetadataStore(store, CLUSTER_ID)
    store.transact([Set("/format", b"2", 0)])
    with pytest.raises(StoreError, match=r"newer Lamina: it has format 2, and this one knows formats up to 1$"):
        load(store)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/format", b"[]"),
        ("/format", b"1e999"),
        ("/format", b"true"),
        ("/format", b"[" * 100_000),
        ("/cluster/id", b'"\\ud800"'),
        ("/cluster/id", b"null"),
        ("/cluster/id", b"\xff"),
        ("/topics/t", b"{}"),
        ("/topics/t", b"[]"),
        ("/topics/t", b'{"id":"00","is_being_deleted":false,"replicas":[[0]]}'),
        ("/topics/t", b'{"id":"%032d","is_being_deleted":false,"replicas":[[]]}' % 1),
        ("/partitions/t", b'{"leader":[0],"leader_epoch":[0],"isr":["01"],"made_on":[[]]}'),
        ("/partitions/t", b'{"leader":[0.5],"leader_epoch":[0],"isr":[[0]],"made_on":[[]]}'),
        ("/partitions/t", b'{"leader":[0],"leader_epoch":[],"isr":[[0]],"made_on":[[]]}'),
        ("/configs/topics/t", b"1"),
        ("/configs/topics/t", b'{"retention.ms":1}'),
        ("/brokers/0", b'{"endpoints":[],"rack":null}'),
        ("/brokers/0", b'{"endpoints":[{"name":"P","protocol":"P","host":"h","port":65536}],"rack":null}'),
        ("/brokers/0", b'{"endpoints":[{"hat":1}],"rack":null}'),
        ("/features", b'{"levels":{"f":"x"},"epoch":0}'),
        ("/acls/2/3/t", b'[["User:a","*",3,4]]'),
        ("/acls/9/3/t", b"[]"),
        ("/scram/a", b'{"1":["!","","",1]}'),
        ("/quotas/[]", b'{"k":1e999}'),
    ],
)
def test_a_value_that_cannot_be_read_is_named(store: SqliteStore, path: str, value: bytes) -> None:
    metadata = MetadataStore(store, CLUSTER_ID)
    image = register_broker(create_topic(metadata.image, "t", topic_id(1), [(0,)]), broker(0))
    metadata.save(set_configs(image, ConfigResource(ResourceType.TOPIC, "t"), {"retention.ms": "1"}))
    found = store.get(path)
    store.transact([Create(path, value) if found is None else Set(path, value, found.version)])
    with pytest.raises(StoreError, match=r"^/[^ ]+ in the metadata store cannot be read: "):
        load(store)


def test_a_resource_on_which_nothing_is_set_is_absent(store: SqliteStore) -> None:
    MetadataStore(store, CLUSTER_ID)
    store.transact([Create("/configs/topics/t", b"{}")])
    assert load(store).configs == {}


def test_half_a_topic_is_refused(store: SqliteStore) -> None:
    metadata = MetadataStore(store, CLUSTER_ID)
    metadata.save(create_topic(metadata.image, "t", topic_id(1), [(0,)]))
    store.transact([Delete("/partitions/t", 0)])
    with pytest.raises(StoreError, match="only half of topic 't'"):
        load(store)


def test_a_broker_id_that_is_no_number_is_named(store: SqliteStore) -> None:
    MetadataStore(store, CLUSTER_ID)
    store.transact([Create("/brokers/x", b"{}")])
    with pytest.raises(StoreError, match="/brokers/x in the metadata store cannot be read"):
        load(store)


@pytest.mark.parametrize(("topic_count", "partition_count"), [(10_000, 1), (1, 10_000)])
def test_ten_thousand_partitions_begin_an_epoch_quickly(
    store: SqliteStore, topic_count: int, partition_count: int
) -> None:
    """About 0.05 s for long topics and 0.17 s for ten thousand short ones; the bound leaves room for a busy machine."""
    metadata = MetadataStore(store, CLUSTER_ID)
    partitions = (new_partition((0,)),) * partition_count
    topics = [Topic(f"topic-{number}", topic_id(number), partitions) for number in range(topic_count)]
    metadata.save(
        replace(
            metadata.image,
            topics={topic.name: topic for topic in topics},
            topic_names={topic.id: topic.name for topic in topics},
        )
    )
    began = time.process_time()
    metadata.save(begin_leader_epochs(metadata.image, {}))
    assert time.process_time() - began < 1
    assert load(store) == metadata.image
    # ZooKeeper, which may be the store one day, takes no larger value.
    assert max(len(entry.value) for entry in store.below("").values()) < 1000 * 1024


def test_killed_in_the_middle_every_acknowledged_change_is_there_and_none_by_half(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")
    acknowledged = -1
    for kill_after in range(1, 13):
        with running("tests.store.write_until_killed", path) as process:
            assert process.stdout is not None
            for _ in range(kill_after):
                acknowledged = int(process.stdout.readline())
            process.kill()
            # What it said between the last look and the kill.
            acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        with closing(SqliteStore(path)) as store:
            image = load(store)
        count = len(image.topics)
        assert acknowledged + 1 <= count <= acknowledged + 2
        assert image.topics.keys() == {f"t{number}" for number in range(count)}
        assert {resource.name: configs for resource, configs in image.configs.items()} == {
            f"t{number}": {"number": str(number)} for number in range(count)
        }
        epochs = {partition.leader_epoch for topic in image.topics.values() for partition in topic.partitions}
        assert len(epochs) == 1
