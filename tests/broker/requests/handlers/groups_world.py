"""Asking a broker of this process about groups, in any version."""

from typing import Any
from uuid import UUID

from lamina.coordinators.records.consumer_protocol import Subscription, write_assignment, write_subscription
from tests.broker.in_process import InProcessBroker

COMMIT, FETCH_OFFSETS, FIND, JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST = range(8, 17)
DELETE, DELETE_OFFSETS, CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE = 42, 47, 68, 69
GROUP = "g"
NO_TOPIC_ID = UUID(int=7)


class Groups:
    def __init__(self, broker: InProcessBroker) -> None:
        self.broker = broker

    def found(self) -> "Groups":
        """The coordinator is there and has loaded."""
        assert self.broker.ask(FIND, 3, key=GROUP, key_type=0).error_code == 0
        self.settle()
        return self

    def settle(self) -> None:
        for _ in range(10_000):
            if all(shard.machine is not None for shard in self.broker.parts.groups.runtime):
                return
            self.broker.turn()
        raise AssertionError("it never loads")

    def join_facts(self, member_id: str = "", *topics: str, **more: Any) -> dict[str, Any]:
        return {
            "group_id": GROUP,
            "session_timeout": 10_000,
            "rebalance_timeout": 60_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": write_subscription(Subscription(1, topics or ("t",)))}],
            **more,
        }

    def join(self, member_id: str = "", *topics: str, version: int = 3, **more: Any) -> Any:
        return self.broker.ask(JOIN, version, **self.join_facts(member_id, *topics, **more))

    def sync(self, joined: Any, version: int = 5, **more: Any) -> Any:
        assignments = [{"member_id": joined.member_id, "assignment": write_assignment({"t": (0,)}, 1)}]
        facts = {
            "group_id": GROUP,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
        }
        return self.broker.ask(SYNC, version, **{**facts, **more})

    def stable(self, *topics: str, **more: Any) -> Any:
        joined = self.join("", *topics, **more)
        assert joined.error_code == 0
        assert self.sync(joined).error_code == 0
        return joined

    def heartbeat(self, member_id: str, generation: int, version: int = 4, **more: Any) -> int:
        facts = {"group_id": GROUP, "generation_id": generation, "member_id": member_id, **more}
        return int(self.broker.ask(HEARTBEAT, version, **facts).error_code)

    def commit(
        self, *partitions: tuple[str, int, int], version: int = 9, generation: int = -1, member: str = "", **more: Any
    ) -> list[int]:
        """Each partition is (topic, index, offset)."""
        asked = [
            {
                "name": topic,
                "topic_id": self.topic_id(topic),
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": offset,
                        "committed_leader_epoch": 3,
                        "committed_metadata": more.get("metadata", "note"),
                    }
                ],
            }
            for topic, index, offset in partitions
        ]
        facts = {
            "group_id": GROUP,
            "generation_id_or_member_epoch": generation,
            "member_id": member,
            "retention_time": -1,
            "topics": asked,
            **more,
        }
        answer = self.broker.ask(COMMIT, version, **facts)
        return [int(one.error_code) for topic in answer.topics for one in topic.partitions]

    def fetch(self, *keys: tuple[str, int], version: int = 9, **more: Any) -> Any:
        """The group's own part of the answer."""
        topics = [
            {"name": topic, "topic_id": self.topic_id(topic), "partition_indexes": [index]} for topic, index in keys
        ] or None
        if version < 8:
            return self.broker.ask(FETCH_OFFSETS, version, **{"group_id": GROUP, "topics": topics, **more})
        group = {"group_id": GROUP, "topics": topics, "member_epoch": -1, **more}
        (answer,) = self.broker.ask(FETCH_OFFSETS, version, groups=[group], **more).groups
        return answer

    def topic_id(self, name: str) -> UUID:
        """The id of the topic, or one that no topic has."""
        topic = self.broker.parts.metadata.image.topics.get(name)
        return NO_TOPIC_ID if topic is None else UUID(bytes=topic.id)

    def consumer(self, member_id: str, epoch: int, *topics: str, version: int = 1, **more: Any) -> Any:
        is_joining = epoch == 0
        facts = {
            "group_id": GROUP,
            "member_id": member_id,
            "member_epoch": epoch,
            "rebalance_timeout": 30_000 if is_joining else -1,
            "subscribed_topic_names": topics if is_joining else None,
            "topic_partitions": [] if is_joining else None,
            **more,
        }
        return self.broker.ask(CONSUMER_HEARTBEAT, version, **facts)
