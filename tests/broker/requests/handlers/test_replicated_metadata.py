"""Metadata, DescribeTopicPartitions and DescribeCluster while brokers are away or lack a listener."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.image.changes import register_broker, remove_broker
from lamina.image.image import Image
from lamina.settings.listeners import Listener
from tests.broker.requests.handlers.replicated import ME, METADATA, OTHER, THIRD, ReplicatedBroker

DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 60, 75


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    opened = ReplicatedBroker(tmp_path)
    opened.place(leader=OTHER, isr=(ME, OTHER))
    yield opened
    opened.close()


def metadata(broker: ReplicatedBroker, version: int = 9) -> Any:
    return broker.ask(METADATA, version, topics=[{"name": "t"}])


def told(broker: ReplicatedBroker, version: int = 9) -> tuple[int, int, list[int], list[int], list[int]]:
    one = metadata(broker, version).topics[0].partitions[0]
    offline = list(getattr(one, "offline_replicas", ()))
    return int(one.error_code), int(one.leader_id), list(one.replica_nodes), list(one.isr_nodes), offline


def with_other_listener(image: Image) -> Image:
    broker = image.brokers[OTHER]
    return register_broker(image, replace(broker, endpoints={"BROKERS": Listener("BROKERS", "PLAINTEXT", "b", 1)}))


def test_all_is_well(broker: ReplicatedBroker) -> None:
    assert told(broker) == (ErrorCode.NONE, OTHER, [ME, OTHER, THIRD], [ME, OTHER], [])
    assert told(broker, 0)[:4] == (ErrorCode.NONE, OTHER, [ME, OTHER, THIRD], [ME, OTHER])


def test_r39_without_a_live_leader(broker: ReplicatedBroker) -> None:
    broker.lose(OTHER)
    assert told(broker) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [ME, OTHER, THIRD], [ME, OTHER], [OTHER])
    assert told(broker, 0)[:4] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [ME, THIRD], [ME])


def test_r39_without_any_leader(broker: ReplicatedBroker) -> None:
    broker.place(leader=-1, isr=(OTHER,))
    assert told(broker)[:2] == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_r39_the_first_clients_see_no_replicas_that_are_away(broker: ReplicatedBroker) -> None:
    broker.lose(THIRD)
    assert told(broker) == (ErrorCode.NONE, OTHER, [ME, OTHER, THIRD], [ME, OTHER], [THIRD])
    assert told(broker, 0)[:4] == (ErrorCode.REPLICA_NOT_AVAILABLE, OTHER, [ME, OTHER], [ME, OTHER])


def test_r39_a_leader_without_the_listener(broker: ReplicatedBroker) -> None:
    broker.change(with_other_listener)
    assert told(broker)[:2] == (ErrorCode.LISTENER_NOT_FOUND, -1)
    assert told(broker, 5)[:2] == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert [one.node_id for one in metadata(broker).brokers] == [ME, THIRD]


def test_r44_a_replica_that_cannot_serve_is_offline(broker: ReplicatedBroker) -> None:
    def changed(image: Image) -> Image:
        image = register_broker(image, replace(image.brokers[OTHER], offline=frozenset({("t", 0)})))
        return register_broker(image, replace(image.brokers[THIRD], is_draining=True))

    broker.change(changed)
    assert told(broker) == (ErrorCode.NONE, OTHER, [ME, OTHER, THIRD], [ME, OTHER], [OTHER, THIRD])


def test_the_own_disk_is_known_before_the_metadata_knows(broker: ReplicatedBroker) -> None:
    broker.place(leader=ME)
    broker.parts.partitions.failed("t", 0, OSError("gone"))
    assert told(broker) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [ME, OTHER, THIRD], [ME, OTHER], [ME])


def test_topics_described_for_the_newest_tools(broker: ReplicatedBroker) -> None:
    broker.lose(OTHER)
    asked = {"topics": [{"name": "t"}], "response_partition_limit": 10, "cursor": None}
    one = broker.ask(DESCRIBE_TOPIC_PARTITIONS, 0, **asked).topics[0].partitions[0]
    assert (one.error_code, one.leader_id, list(one.offline_replicas)) == (ErrorCode.NONE, -1, [OTHER])


def test_r40_the_cluster_is_its_live_brokers_with_this_listener(broker: ReplicatedBroker) -> None:
    described = broker.ask(DESCRIBE_CLUSTER, 1, endpoint_type=1)
    assert [(one.broker_id, one.host) for one in described.brokers] == [
        (ME, "broker.test"),
        (OTHER, "broker-2.test"),
        (THIRD, "broker-3.test"),
    ]
    assert described.controller_id == ME
    broker.lose(THIRD)
    broker.change(with_other_listener)
    assert [one.broker_id for one in broker.ask(DESCRIBE_CLUSTER, 1, endpoint_type=1).brokers] == [ME]


@pytest.mark.parametrize("hide", [lambda image: remove_broker(image, OTHER), with_other_listener])
def test_r40_a_controller_that_clients_cannot_reach_is_not_told(
    broker: ReplicatedBroker, hide: Callable[[Image], Image]
) -> None:
    """While a cluster starts, its controller may be elected before it serves."""
    broker.change(lambda image: replace(image, controller_id=OTHER))
    assert metadata(broker).controller_id == OTHER
    broker.change(hide)
    assert metadata(broker).controller_id == -1
    assert broker.ask(DESCRIBE_CLUSTER, 1, endpoint_type=1).controller_id == -1
