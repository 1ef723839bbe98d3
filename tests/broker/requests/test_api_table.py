"""What is advertised, and that an unexpected failure gets an answer in every version of every API."""

import logging
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.requests.api import Api
from lamina.broker.requests.api_table import APIS
from lamina.broker.requests.client_quotas import ClientQuotas
from lamina.broker.requests.router import Router
from lamina.errors import ErrorCode
from lamina.wire.fields import Entity, fields_of
from tests.broker.in_process import InProcessBroker

PRODUCE, FETCH = 0, 1

RANGES = {
    PRODUCE: (0, 13),
    FETCH: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    28: (0, 5),
    23: (2, 4),
    27: (1, 2),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    50: (0, 0),
    51: (0, 0),
    48: (0, 1),
    49: (0, 1),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    64: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
    10_001: (0, 0),
    10_002: (0, 0),
}
"""protocol.md §2.4, with transactions version 2, and the version of WriteTxnMarkers that tells it; from 10,000 on
Lamina's own."""


def test_the_advertised_ranges_are_those_of_the_facts(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path, {})
    response = broker.ask(18, 4, client_software_name="test", client_software_version="1")
    broker.close()
    assert {one.api_key: (one.min_version, one.max_version) for one in response.api_keys} == RANGES


def _codes(answer: Any) -> set[int]:
    """Every error code anywhere in an answer."""
    found = set()
    for field in fields_of(type(answer)):
        value = getattr(answer, field.name)
        if field.name in ("error_code", "partition_error_code"):
            found.add(int(value))
        for nested in value if isinstance(value, tuple) else ():
            if isinstance(nested, Entity):
                found |= _codes(nested)
    return found


ASKED: dict[str, Any] = {
    "topic_names": ["t"],
    "resources": [{"resource_type": 2, "resource_name": "t"}],
    "client_software_name": "test",
    "client_software_version": "1",
    "coordinator_keys": ["g"],
    "groups_names": ["g"],
    "group_ids": ["g"],
}
GROUPS: dict[int, Any] = {9: [{"group_id": "g"}], 15: ["g"]}
TOPIC: dict[str, Any] = {"name": "t", "topic": "t", "partitions": [{}], "partition_indexes": [0]}
ASKED["markers"] = [{"topics": [TOPIC]}]
ASKED["dirs"] = [{"path": "/", "topics": [{"name": "t", "partitions": [0]}]}]
ASKED["entries"] = [{}]
ASKED["creations"] = [{}]
ASKED["filters"] = [{}]
ASKED["deletions"] = [{"name": "u", "mechanism": 1}]
ASKED["election_type"] = 0
ASKED["topic_partitions"] = [{"topic": "t", "partitions": [0]}]
ASKED["transactional_ids"] = ["x"]
ASKED["v3_and_below_topics"] = [{"name": "t", "partitions": [0]}]


@pytest.mark.parametrize("api", [api for api in APIS if api.key not in (PRODUCE, FETCH)], ids=lambda api: api.name)
def test_an_unexpected_failure_is_told_in_every_version(
    api: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("a test")

    broker = InProcessBroker(tmp_path, {})
    parts = broker.parts
    quotas = ClientQuotas(parts.metadata.settings, parts.counters.quotas, parts.clocks)
    parts.router = Router([(api, fail)], parts.counters, parts.request_watch, parts.threads, parts.readiness, quotas)
    with caplog.at_level(logging.CRITICAL):
        for version in api.versions:
            topic = TOPIC | ({"partitions": [0]} if api.key == 35 else {"partition_indexes": [0]})
            answer = broker.ask(api.key, version, topics=[topic], groups=GROUPS.get(api.key, []), **ASKED)
            told = _codes(answer)
            # Metadata v0 to v12 and DescribeLogDirs v1 and v2 have no place for an error of the whole.
            assert told in ({int(ErrorCode.UNKNOWN_SERVER_ERROR)}, set()), version
            assert told or (api.key == 35 and version < 3)
    assert broker.parts.counters.unexpected.total() == len(api.versions)
    broker.close()
