"""Clients that call everything by the longest name that the protocol can carry are answered like any other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.wire.codec import SIZE_BYTES, encode_request, parse_response
from lamina.wire.versions import request_schema
from tests.broker.in_process import InProcessBroker, build

LONGEST = "x" * (2**15 - 1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", {"offsets.topic.num.partitions": "1"})
    opened.create("t")
    opened.ask(10, 4, key_type=0, coordinator_keys=["g"])
    opened.settle()
    yield opened
    opened.close()


CONFIG = {"name": LONGEST, "config_operation": 0, "value": LONGEST}
REQUESTS: dict[str, tuple[int, tuple[int, ...], dict[str, Any]]] = {
    "Produce": (0, (8, 9), {"acks": 1, "topic_data": [{"name": LONGEST, "partition_data": [{"records": b""}]}]}),
    "DescribeGroups": (15, (5, 6), {"groups": [LONGEST]}),
    "DeleteTopics": (20, (5, 6), {"topics": [{"name": LONGEST}], "topic_names": [LONGEST]}),
    "AlterConfigs": (33, (1, 2), {"resources": [{"resource_type": 2, "resource_name": "t", "configs": [CONFIG]}]}),
    "CreatePartitions": (37, (1, 2), {"topics": [{"name": LONGEST, "count": 3}]}),
    "ElectLeaders": (
        43,
        (0, 2),
        {"election_type": 0, "topic_partitions": [{"topic": LONGEST, "partitions": [0]}]},
    ),
    "IncrementalAlterConfigs": (
        44,
        (0, 1),
        {"resources": [{"resource_type": 2, "resource_name": LONGEST, "configs": [CONFIG]}]},
    ),
    "UpdateFeatures": (57, (0,), {"feature_updates": [{"feature": LONGEST, "max_version_level": 1}]}),
    "ConsumerGroupHeartbeat": (68, (0,), {"group_id": LONGEST, "member_id": "m", "member_epoch": 5}),
    "ConsumerGroupDescribe": (69, (0,), {"group_ids": [LONGEST]}),
}


@pytest.mark.parametrize("api", REQUESTS)
def test_an_error_that_names_it_fits_its_answer(broker: InProcessBroker, api: str) -> None:
    api_key, versions, facts = REQUESTS[api]
    for version in versions:
        broker.ask(api_key, version, **facts)
    assert broker.parts.counters.unexpected.total() == 0


@pytest.mark.parametrize(("version", "who"), [(0, {}), (5, {"group_instance_id": LONGEST})], ids=["client", "static"])
def test_a_new_member_gets_an_id_that_can_be_stored(broker: InProcessBroker, version: int, who: dict[str, str]) -> None:
    def ask(api_key: int, **facts: Any) -> Any:
        frame = encode_request(build(request_schema(api_key, version), facts | who), 7, LONGEST)
        answer = broker.serve(frame[SIZE_BYTES:])
        assert answer is not None
        return parse_response(api_key, version, answer[SIZE_BYTES:])[1]

    joined = ask(
        11,
        group_id="g",
        member_id="",
        session_timeout=6000,
        rebalance_timeout=6000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )
    assert joined.error_code == ErrorCode.NONE
    member_id, generation = joined.member_id, joined.generation_id
    synced = ask(
        14,
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": member_id, "assignment": b""}],
    )
    assert synced.error_code == ErrorCode.NONE
    assert broker.parts.counters.unexpected.total() == 0
