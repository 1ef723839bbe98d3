"""Throttles on one side or the other slow a reassignment down, and nothing else (R77-R79)."""

import pytest

from lamina.errors import ErrorCode
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import INCREMENTAL_ALTER_CONFIGS, Members
from tests.broker.cluster.test_reassignments import created, kept, reassign, settle

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
BATCHES = 8
NOTHING = "0"
"""A rate that the first batch exceeds, until it is forgotten."""


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Each fetch gets one batch."""
    members = new_members(log_segment_delete_delay_ms="0", replica_fetch_max_bytes="1")
    for node_id in (1, 2, 3):
        members.start(node_id)
    return members


def configure(members: Members, resource_type: int, resource: str, name: str, value: str | None) -> None:
    config = {"name": name, "config_operation": DELETE if value is None else SET, "value": value}
    resources = [{"resource_type": resource_type, "resource_name": resource, "configs": [config]}]
    response = members.ask(1, INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    assert response.responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("side", "replica", "throttled"), [("leader", "0:1", 1), ("follower", "0:3", 3), ("leader", "*", 1)]
)
def test_a_throttled_replica_waits_and_the_others_do_not(
    members: Members, side: str, replica: str, throttled: int
) -> None:
    created(members, 1, 2, records=1)
    for _ in range(BATCHES - 1):
        assert members.produce(1, "t") == ErrorCode.NONE
    configure(members, BROKER, str(throttled), f"{side}.replication.throttled.rate", NOTHING)
    configure(members, TOPIC, "t", f"{side}.replication.throttled.replicas", replica)
    assert reassign(members, {0: [1, 2, 3]}) == [0]
    counters = members.up[throttled].parts.counters.replication
    members.run_until(lambda: counters.throttled_reads + counters.throttled_fetches > 0)
    assert counters.throttled_out_bytes + counters.throttled_in_bytes > 0
    copy = members.up[3].parts.partitions.get("t", 0).log
    assert copy.log_end_offset < BATCHES
    assert members.produce(1, "t") == ErrorCode.NONE, "broker 2 is in sync and stays so"
    assert set(members.state("t").isr) == {1, 2}
    configure(members, BROKER, str(throttled), f"{side}.replication.throttled.rate", None)
    settle(members, 1, 2, 3)
    assert kept(members, 3) == kept(members, 1)


def test_a_rate_for_all_brokers_holds_where_none_has_its_own(members: Members) -> None:
    created(members, 1, records=1)
    assert members.produce(1, "t") == members.produce(1, "t") == ErrorCode.NONE
    configure(members, BROKER, "", "follower.replication.throttled.rate", NOTHING)
    configure(members, BROKER, "3", "follower.replication.throttled.rate", "1000000")
    configure(members, TOPIC, "t", "follower.replication.throttled.replicas", "*")
    assert reassign(members, {0: [1, 2, 3]}) == [0]
    members.run_until(lambda: set(members.state("t").isr) == {1, 3})
    counters = members.up[2].parts.counters.replication
    members.run_until(lambda: counters.throttled_fetches > 0)
    configure(members, TOPIC, "t", "follower.replication.throttled.replicas", None)
    settle(members, 1, 2, 3)
