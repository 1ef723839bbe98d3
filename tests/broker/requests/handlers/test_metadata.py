import pytest

from lamina.broker.requests.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 3


@pytest.mark.parametrize("version", range(8, 14))
def test_authorized_operations_are_told_to_those_who_ask_and_to_nobody_else(
    broker: InProcessBroker, version: int
) -> None:
    broker.create("t")
    for _ in range(2):
        asked = broker.ask(
            API_KEY,
            version,
            topics=None,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        silent = broker.ask(API_KEY, version, topics=None)
        assert asked.topics[0].topic_authorized_operations == ALL_ON_TOPIC
        assert silent.topics[0].topic_authorized_operations == NOT_ASKED
        if version <= 10:
            assert asked.cluster_authorized_operations == ALL_ON_CLUSTER
            assert silent.cluster_authorized_operations == NOT_ASKED


def test_the_topics_that_can_be_made_are_made_at_once_and_each_other_one_gets_its_error(
    broker: InProcessBroker,
) -> None:
    named = [{"name": name} for name in ("a", "b/c", "d", "__cluster_metadata", "e_f", "e.f")]
    response = broker.ask(API_KEY, 12, topics=named, allow_auto_topic_creation=True)
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "a": 0,
        "b/c": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "d": 0,
        "__cluster_metadata": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "e_f": 0,
        "e.f": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert broker.produce("d", 1) == 0


@pytest.mark.parametrize("version", [5, 12])
def test_a_partition_that_is_offline_has_no_leader(broker: InProcessBroker, version: int) -> None:
    broker.create("t", 2)
    broker.ask(3, version, topics=None)
    broker.parts.partitions.failed("t", 1, RuntimeError("a test"))
    [topic] = broker.ask(3, version, topics=[{"name": "t"}]).topics
    healthy, offline = sorted(topic.partitions, key=lambda one: one.partition_index)
    assert (healthy.error_code, healthy.offline_replicas) == (ErrorCode.NONE, ())
    assert (offline.error_code, offline.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert offline.offline_replicas == (broker.parts.metadata.node_id,)
