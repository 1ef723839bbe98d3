"""ElectLeaders as a client sees it (R68). On a broker by itself every partition is led as it should be."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.broker.metadata.metadata import Metadata
from lamina.errors import ErrorCode
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER
from tests.broker.in_process import InProcessBroker

ELECT_LEADERS = 43
VERSIONS = range(3)
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def broker(broker: InProcessBroker) -> InProcessBroker:
    broker.create("t", 2)
    return broker


def ask(broker: InProcessBroker, election_type: int, *topics: tuple[str, list[int]], version: int = 2) -> Any:
    """Of all partitions where none is named."""
    named = [{"topic": name, "partitions": indexes} for name, indexes in topics] or None
    return broker.ask(
        ELECT_LEADERS, version, election_type=election_type, topic_partitions=named, timeout=timedelta(seconds=5)
    )


def codes(response: Any) -> dict[tuple[str, int], int]:
    assert not getattr(response, "error_code", 0)
    return {
        (topic.topic, result.partition_id): result.error_code
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_each_partition_gets_its_own_error(broker: InProcessBroker, version: int) -> None:
    response = ask(broker, PREFERRED, ("t", [0, 7]), ("nobody", [0]), ("t", [0]), version=version)
    assert codes(response) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nobody", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    [first, _] = [topic.partition_result for topic in response.replica_election_results]
    assert first[0].error_message == "t-0 is led by broker 1 already, which is its preferred one"


@pytest.mark.parametrize("version", VERSIONS)
def test_of_all_partitions_only_those_in_need_are_answered(broker: InProcessBroker, version: int) -> None:
    assert codes(ask(broker, PREFERRED, version=version)) == {}
    broker.set_partition("t", 1, leader=NO_LEADER)
    told = codes(ask(broker, PREFERRED, version=version))
    assert told == {("t", 1): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unclean_election_where_nobody_leads(broker: InProcessBroker) -> None:
    broker.set_partition("t", 1, leader=NO_LEADER)
    assert codes(ask(broker, UNCLEAN, ("t", [0, 1]))) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.NONE,
    }
    assert broker.parts.metadata.image.partition("t", 1).leader == 1
    assert codes(ask(broker, UNCLEAN)) == {}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("election_type", [-1, 2, 127])
def test_an_election_of_no_known_type_is_refused(broker: InProcessBroker, version: int, election_type: int) -> None:
    response = ask(broker, election_type, ("t", [0]), version=version)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    [topic] = response.replica_election_results
    [result] = topic.partition_result
    assert (topic.topic, result.partition_id, result.error_code) == ("t", 0, ErrorCode.INVALID_REQUEST)
    assert ask(broker, election_type, version=version).error_code == ErrorCode.INVALID_REQUEST


def test_what_no_client_is_told_in_time_is_timed_out(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.set_partition("t", 1, leader=NO_LEADER)
    image = broker.parts.metadata.image

    async def never(_metadata: Metadata, _holds: Any) -> None:
        raise TimeoutError

    def stale(_metadata: Metadata) -> Image:
        return image

    monkeypatch.setattr(Metadata, "wait_until", never)
    monkeypatch.setattr(Metadata, "image", property(stale))
    assert codes(ask(broker, UNCLEAN, ("t", [0, 1]))) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.REQUEST_TIMED_OUT,
    }
