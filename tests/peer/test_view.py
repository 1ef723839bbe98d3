"""What is known of a cluster, and how it changes."""

from typing import Any
from uuid import UUID

import pytest

from lamina.errors import LeaderNotAvailable, UnknownTopicOrPartition
from lamina.peer.addresses import Address
from lamina.peer.view import ClusterView, with_leader, with_metadata
from lamina.wire.codec import SIZE_BYTES, parse_response
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from tests.peer.responses import response_frame

METADATA, VERSION = 3, 13
ONE, TWO = UUID(int=1), UUID(int=2)
UNKNOWN_TOPIC = 3


def metadata(*topics: dict[str, Any], brokers: tuple[int, ...] = (1, 2), version: int = VERSION) -> Any:
    frame = response_frame(
        METADATA,
        version,
        1,
        brokers=[{"node_id": number, "host": f"broker-{number}", "port": 9092} for number in brokers],
        cluster_id="cluster",
        controller_id=2,
        topics=topics,
    )
    return parse_response(METADATA, version, frame[SIZE_BYTES:])[1]


def orders(leader_id: int, leader_epoch: int, topic_id: UUID = ONE) -> dict[str, Any]:
    partition = {"partition_index": 0, "leader_id": leader_id, "leader_epoch": leader_epoch}
    return {"name": "orders", "topic_id": topic_id, "partitions": [partition]}


def seen(*responses: Any) -> ClusterView:
    view = ClusterView()
    for response in responses:
        view, _ = with_metadata(view, response)
    return view


def test_metadata_tells_brokers_controller_and_leaders() -> None:
    view = seen(metadata(orders(1, 5)))
    assert view.brokers == {1: Address("broker-1", 9092), 2: Address("broker-2", 9092)}
    assert (view.cluster_id, view.controller_id) == ("cluster", 2)
    assert view.topics["orders"].topic_id == ONE
    assert view.leader("orders", 0) == CurrentLeader(1, 5)


def test_brokers_that_are_gone_are_forgotten_and_topics_that_were_not_asked_for_are_kept() -> None:
    view = seen(metadata(orders(1, 5)), metadata(brokers=(2,)))
    assert list(view.brokers) == [2]
    assert view.leader("orders", 0) == CurrentLeader(1, 5)


def test_an_older_word_does_not_undo_a_newer_one() -> None:
    assert seen(metadata(orders(2, 6)), metadata(orders(1, 5))).leader("orders", 0) == CurrentLeader(2, 6)
    assert seen(metadata(orders(1, 5)), metadata(orders(2, 6))).leader("orders", 0) == CurrentLeader(2, 6)


def test_a_topic_made_again_starts_at_new_epochs() -> None:
    view = seen(metadata(orders(2, 6)), metadata(orders(1, 0, TWO)))
    assert view.leader("orders", 0) == CurrentLeader(1, 0)


def test_a_topic_in_error_is_forgotten_and_told() -> None:
    gone = {"name": "orders", "error_code": UNKNOWN_TOPIC}
    view, errors = with_metadata(seen(metadata(orders(1, 5))), metadata(gone))
    assert view.topics == {}
    assert isinstance(errors["orders"], UnknownTopicOrPartition)


def test_a_broker_without_topic_ids_is_understood() -> None:
    view = seen(metadata(orders(1, 5), version=9))
    assert view.topics["orders"].topic_id is None


def test_no_leader_and_no_partition_are_two_errors() -> None:
    view = seen(metadata(orders(-1, 5)))
    with pytest.raises(LeaderNotAvailable, match="orders-0 has no leader now"):
        view.leader("orders", 0)
    with pytest.raises(UnknownTopicOrPartition, match="no partition orders-1"):
        view.leader("orders", 1)


def test_a_hint_moves_a_leader_to_a_broker_that_metadata_did_not_tell() -> None:
    view = with_leader(
        seen(metadata(orders(1, 5))), "orders", 0, CurrentLeader(3, 6), [NodeEndpoint(3, "broker-3", 9093)]
    )
    assert view.leader("orders", 0) == CurrentLeader(3, 6)
    assert view.brokers[3] == Address("broker-3", 9093)


@pytest.mark.parametrize(
    ("topic", "partition", "leader"),
    [
        ("orders", 0, CurrentLeader(2, 5)),
        ("orders", 0, CurrentLeader(2, 4)),
        ("orders", 0, CurrentLeader(9, 6)),
        ("orders", 1, CurrentLeader(2, 6)),
        ("others", 0, CurrentLeader(2, 6)),
    ],
    ids=["same epoch", "older epoch", "no address", "unknown partition", "unknown topic"],
)
def test_a_hint_that_is_no_news_changes_nothing(topic: str, partition: int, leader: CurrentLeader) -> None:
    view = seen(metadata(orders(1, 5)))
    assert with_leader(view, topic, partition, leader, []) is view
