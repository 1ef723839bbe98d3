"""What the admin clients of two libraries do every day, against a broker with sockets."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from confluent_kafka.admin import ResourcePatternType as ConfluentPatternType
from confluent_kafka.admin import ResourceType as ConfluentType
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.admin import ConfigResource as KafkaPythonResource
from kafka.errors import SecurityDisabledError

from tests.broker.in_thread import BrokerInThread

SECONDS = 20.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerInThread]:
    started = BrokerInThread(tmp_path / "data").start()
    yield started
    started.stop()


def only(futures: dict[Any, Future[Any]]) -> Any:
    [future] = futures.values()
    return future.result(SECONDS)


class TestConfluentKafka:
    def test_topics_are_made_widened_and_deleted(self, broker: BrokerInThread) -> None:
        admin = AdminClient({"bootstrap.servers": broker.address})
        only(admin.create_topics([NewTopic("t", 2, config={"retention.ms": "1000"})]))
        with pytest.raises(KafkaException) as again:
            only(admin.create_topics([NewTopic("t", 2)]))
        assert again.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        only(admin.create_partitions([NewPartitions("t", 3)]))
        assert len(admin.list_topics(timeout=SECONDS).topics["t"].partitions) == 3
        only(admin.delete_topics(["t"]))
        assert "t" not in admin.list_topics(timeout=SECONDS).topics

    def test_configs_are_read_and_changed(self, broker: BrokerInThread) -> None:
        admin = AdminClient({"bootstrap.servers": broker.address})
        only(admin.create_topics([NewTopic("t", 1)]))
        operation = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
        only(
            admin.incremental_alter_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=[operation])]
            )
        )
        described = only(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "t")]))
        assert described["cleanup.policy"].value == "delete,compact"
        of_broker = only(admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]))
        assert of_broker["node.id"].is_read_only
        replacing = ConfigResource(ConfigResource.Type.TOPIC, "t", set_config={"retention.ms": "5"})
        with pytest.warns(DeprecationWarning, match="alter_configs"):
            replaced = admin.alter_configs([replacing])
        only(replaced)
        described = only(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "t")]))
        assert (described["cleanup.policy"].value, described["retention.ms"].value) == ("delete", "5")

    def test_an_idempotent_producers_records_are_deleted(self, broker: BrokerInThread) -> None:
        producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
        for number in range(10):
            producer.produce("t", str(number), partition=0)
        assert producer.flush(SECONDS) == 0
        admin = AdminClient({"bootstrap.servers": broker.address})
        deleted = only(admin.delete_records([TopicPartition("t", 0, 4)]))
        assert deleted.low_watermark == 4

    def test_the_cluster_is_described(self, broker: BrokerInThread) -> None:
        admin = AdminClient({"bootstrap.servers": broker.address})
        cluster = admin.describe_cluster(include_authorized_operations=True, request_timeout=SECONDS).result(SECONDS)
        assert cluster.controller.id == 1
        assert [node.id for node in cluster.nodes] == [1]
        assert cluster.authorized_operations

    def test_access_rules_can_be_neither_made_nor_deleted(self, broker: BrokerInThread) -> None:
        admin = AdminClient({"bootstrap.servers": broker.address})
        of_t = (ConfluentType.TOPIC, "t", ConfluentPatternType.LITERAL, "User:a", "*")
        rule = AclBinding(*of_t, AclOperation.READ, AclPermissionType.ALLOW)
        every = AclBindingFilter(*of_t, AclOperation.ANY, AclPermissionType.ANY)
        for asked in (admin.create_acls([rule]), admin.delete_acls([every])):
            with pytest.raises(KafkaException) as refused:
                only(asked)
            assert refused.value.args[0].code() == KafkaError.SECURITY_DISABLED


class TestKafkaPython:
    @pytest.fixture
    def admin(self, broker: BrokerInThread) -> Iterator[Any]:
        client = KafkaAdminClient(bootstrap_servers=broker.address)
        yield client
        client.close()

    def test_topics_are_made_widened_and_deleted(self, admin: Any) -> None:
        admin.create_topics({"t": {"num_partitions": 2, "replication_factor": 1}})
        admin.create_partitions({"t": 3})
        [described] = admin.describe_topics(["t"])
        assert len(described["partitions"]) == 3
        admin.delete_topics(["t"])
        assert "t" not in admin.list_topics()

    def test_configs_are_read_and_changed(self, admin: Any) -> None:
        admin.create_topics({"t": {"num_partitions": 1, "replication_factor": 1}})
        admin.alter_configs([KafkaPythonResource("TOPIC", "t", {"retention.ms": "1000"})])
        described = admin.describe_configs([KafkaPythonResource("TOPIC", "t")])
        modified = described["topic"]["t"]
        assert {name: config["value"] for name, config in modified.items()} == {"retention.ms": "1000"}

    def test_the_cluster_and_its_directories_are_described_and_there_are_no_access_rules(self, admin: Any) -> None:
        admin.create_topics({"t": {"num_partitions": 1, "replication_factor": 1}})
        cluster = admin.describe_cluster()
        assert (cluster["controller_id"], [broker["broker_id"] for broker in cluster["brokers"]]) == (1, [1])
        [of_broker] = admin.describe_log_dirs()
        [directory] = of_broker["log_dirs"]
        assert [topic["name"] for topic in directory["topics"]] == ["t"]
        every_resource = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, every_resource)
        with pytest.raises(SecurityDisabledError):
            admin.describe_acls(every)
