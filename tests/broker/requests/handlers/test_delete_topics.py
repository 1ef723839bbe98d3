from typing import Any
from uuid import UUID

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 20


def topic_id(broker: InProcessBroker, name: str) -> UUID:
    return UUID(bytes=broker.parts.metadata.image.topics[name].id)


def delete(broker: InProcessBroker, *topics: dict[str, Any]) -> Any:
    return broker.ask(API_KEY, 6, topics=topics).responses


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name_and_says_which_are_unknown(broker: InProcessBroker, version: int) -> None:
    broker.create("t", partitions=2)
    was = topic_id(broker, "t")
    asked = {"topic_names": ["t", "none"], "topics": [{"name": "t"}, {"name": "none"}]}
    gone, none = broker.ask(API_KEY, version, **asked).responses
    assert (gone.name, gone.error_code) == ("t", 0)
    assert (none.name, none.error_code) == ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if version >= 5:
        assert gone.error_message is None
        assert "none" in none.error_message
    if version >= 6:
        assert gone.topic_id == was
    assert not broker.parts.metadata.image.topics
    assert len(broker.parts.partitions) == 0


def test_a_deleted_topic_can_be_made_again_under_another_id_and_is_empty(broker: InProcessBroker) -> None:
    broker.create("t", retention_ms="1000")
    broker.produce("t", 5)
    was = topic_id(broker, "t")
    assert delete(broker, {"name": "t"})[0].error_code == 0
    broker.create("t")
    assert topic_id(broker, "t") != was
    assert broker.parts.metadata.config_of("t").retention_ms != 1000
    assert broker.produce("t", 1) == 0
    broker.restart()
    assert broker.produce("t", 1) == 1


def test_version_6_deletes_by_id_and_tells_the_name(broker: InProcessBroker) -> None:
    broker.create("t")
    was = topic_id(broker, "t")
    gone, unknown = delete(broker, {"topic_id": was}, {"topic_id": UUID(int=5)})
    assert (gone.name, gone.topic_id, gone.error_code) == ("t", was, 0)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, UUID(int=5), ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_topic_that_is_named_twice_or_in_no_clear_way_stays(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.create("u")
    twice = delete(broker, {"name": "t"}, {"topic_id": topic_id(broker, "t")})
    unclear = delete(broker, {"name": "u", "topic_id": topic_id(broker, "u")}, {})
    assert [answer.error_code for answer in (*twice, *unclear)] == [ErrorCode.INVALID_REQUEST] * 4
    assert set(broker.parts.metadata.image.topics) == {"t", "u"}


@pytest.mark.parametrize("version", range(1, 7))
def test_nothing_is_deleted_where_deletion_is_disabled(broker: InProcessBroker, version: int) -> None:
    broker.restart(**{"delete.topic.enable": "false"})
    broker.create("t")
    [answer] = broker.ask(API_KEY, version, topic_names=["t"], topics=[{"name": "t"}]).responses
    assert answer.error_code == (ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST)
    assert "t" in broker.parts.metadata.image.topics


def test_a_topic_made_again_is_described_as_the_new_one(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.ask(3, 12, topics=None)
    delete(broker, {"name": "t"})
    assert not broker.ask(3, 12, topics=None).topics
    broker.create("t")
    [again] = broker.ask(3, 12, topics=None).topics
    assert again.topic_id.bytes == broker.parts.metadata.image.topics["t"].id
