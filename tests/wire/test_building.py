"""Requests of any version from one set of facts."""

import pytest

from lamina.wire.building import build_request
from lamina.wire.versions import request_schema

LIST_OFFSETS = 2
FACTS = {
    "replica_id": -1,
    "isolation_level": 1,
    "topics": [{"name": "orders", "partitions": [{"partition_index": 3, "current_leader_epoch": 5, "timestamp": -1}]}],
}


def test_structures_are_built_from_mappings() -> None:
    request = build_request(LIST_OFFSETS, 9, FACTS)
    assert type(request) is request_schema(LIST_OFFSETS, 9)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.current_leader_epoch) == ("orders", 3, 5)


def test_what_a_version_cannot_carry_is_left_out() -> None:
    (partition,) = build_request(LIST_OFFSETS, 1, FACTS).topics[0].partitions
    assert not hasattr(partition, "current_leader_epoch")


def test_a_field_that_has_no_default_must_be_said() -> None:
    with pytest.raises(TypeError, match="topics"):
        build_request(LIST_OFFSETS, 9, {"replica_id": -1, "isolation_level": 0})
