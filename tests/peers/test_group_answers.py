"""Requests about groups that are absent, unnamed or too large: Lamina answers them as Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina
from tests.peers.side_by_side import Broker, same

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

COMMIT, FETCH_OFFSETS, FIND, LEAVE, DESCRIBE, LIST, API_VERSIONS, WRITE_TXN_MARKERS = 8, 9, 10, 13, 15, 16, 18, 27
CREATE_TOPICS, DELETE, CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE = 19, 42, 68, 69
WAIT_SECONDS = 60


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, lamina: Lamina) -> Iterator[tuple[Broker, Broker]]:
    """Kafka first, and Lamina."""
    with Kafka(tmp_path_factory.mktemp("kafka")) as kafka:
        both = (Broker(kafka.bootstrap), Broker(lamina.bootstrap))
        yield both
        for broker in both:
            broker.close()


@pytest.mark.parametrize("version", range(6))
def test_leaving_a_group_that_is_absent(brokers: tuple[Broker, Broker], version: int) -> None:
    def leave(broker: Broker, group: str) -> Any:
        members = [{"member_id": "m"}, {"member_id": "", "group_instance_id": "i"}]
        return broker.ask(LEAVE, version, group_id=group, member_id="m", members=members)

    told = same(brokers, lambda broker: leave(broker, "absent"))
    assert told.error_code == (ErrorCode.UNKNOWN_MEMBER_ID if version < 3 else 0)
    same(brokers, lambda broker: leave(broker, ""))


@pytest.mark.parametrize("version", range(7))
def test_describing_a_group_that_is_absent(brokers: tuple[Broker, Broker], version: int) -> None:
    def describe(broker: Broker) -> Any:
        (group,) = broker.ask(DESCRIBE, version, groups=["absent"], include_authorized_operations=True).groups
        operations = getattr(group, "authorized_operations", None)
        return group.error_code, group.group_state, group.protocol_type, group.protocol_data, operations

    same(brokers, describe)


@pytest.mark.parametrize("version", range(2))
def test_describing_a_consumer_group_that_is_absent(brokers: tuple[Broker, Broker], version: int) -> None:
    def describe(broker: Broker) -> Any:
        asked = {"group_ids": ["absent"], "include_authorized_operations": True}
        (group,) = broker.ask(CONSUMER_DESCRIBE, version, **asked).groups
        return group.error_code, group.group_state, group.authorized_operations

    same(brokers, describe)


@pytest.mark.parametrize("version", [2, 8, 9])
def test_the_group_without_a_name(brokers: tuple[Broker, Broker], version: int) -> None:
    def use(broker: Broker) -> Any:
        (refused,) = broker.commit("", 3, "m", version).topics
        (committed,) = broker.commit("", version=version).topics
        topics = [{"name": "t", "partition_indexes": [0]}]
        (fetched,) = broker.ask(FETCH_OFFSETS, 8, groups=[{"group_id": "", "topics": topics}]).groups
        (described,) = broker.ask(DESCRIBE, 6, groups=[""]).groups
        deleted = [broker.ask(DELETE, 2, groups_names=[""]).results[0].error_code for _ in range(2)]
        return refused, committed, fetched, described.error_code, described.group_state, deleted

    _, committed, *_ = same(brokers, use)
    assert committed.partitions[0].error_code == 0


@pytest.mark.parametrize("version", [4, 5])
def test_listing_groups_of_both_types(brokers: tuple[Broker, Broker], version: int) -> None:
    def listed(broker: Broker, **filters: Any) -> Any:
        broker.heartbeat("new", "m", "t")
        broker.commit("simple")
        response = broker.ask(LIST, version, **filters)
        groups = [group for group in response.groups if group.group_id in ("new", "simple")]
        return response.error_code, sorted(groups, key=lambda group: group.group_id)

    same(brokers, listed)
    for types in (["Classic"], ["consumer"], ["share"], ["nothing of the kind"]):
        same(brokers, lambda broker, types=types: listed(broker, types_filter=types))  # type: ignore[misc]


def test_a_heartbeat_with_too_many_names(brokers: tuple[Broker, Broker]) -> None:
    names = [f"{number:0>200}" for number in range(6_000)]

    def beat(broker: Broker) -> Any:
        refused = broker.heartbeat("large", "m", *names)
        joined = broker.heartbeat("large", "m", "t")
        return refused.error_code, refused.member_epoch, refused.assignment, joined.error_code, joined.member_epoch

    code, *_ = same(brokers, beat)
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_write_txn_markers_is_offered_in_kafkas_versions_and_in_the_next_one(brokers: tuple[Broker, Broker]) -> None:
    """Version 2, of Kafka 4.2, tells the transaction version (KIP-1228): the brokers of a cluster need it."""

    def offered(broker: Broker) -> tuple[int, int]:
        keys = broker.ask(API_VERSIONS, 3, client_software_name="test", client_software_version="1").api_keys
        return next((one.min_version, one.max_version) for one in keys if one.api_key == WRITE_TXN_MARKERS)

    kafka, lamina = brokers
    assert (offered(kafka), offered(lamina)) == ((1, 1), (1, 2))
