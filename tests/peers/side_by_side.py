"""Two brokers that are asked the same."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from lamina.wire.versions import request_schema
from tests.broker.group_members import wait_until
from tests.broker.in_process import build
from tests.broker.raw import RawClient

COMMIT, FIND, CREATE_TOPICS, CONSUMER_HEARTBEAT = 8, 10, 19, 68
WAIT_SECONDS = 60


class Broker:
    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        self._address = (host, int(port))
        self._client = RawClient(self)
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        assert self.ask(CREATE_TOPICS, 7, topics=[topic], timeout=WAIT_SECONDS * 1000).topics[0].error_code == 0
        # A broker that has just started has yet to make its topic and to load its coordinators.
        wait_until(lambda: self.ask(FIND, 3, key="g", key_type=0).error_code == 0)
        wait_until(lambda: self.commit("g").topics[0].partitions[0].error_code == 0)

    def connect(self) -> socket.socket:
        return socket.create_connection(self._address, WAIT_SECONDS)

    def close(self) -> None:
        self._client.socket.close()

    def ask(self, api_key: int, api_version: int, **facts: Any) -> Any:
        return self._client.ask(build(request_schema(api_key, api_version), facts))

    def commit(self, group: str, generation: int = -1, member: str = "", version: int = 9) -> Any:
        partition = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1}
        topic = {"name": "t", "partitions": [partition | {"committed_metadata": ""}]}
        facts = {"group_id": group, "generation_id_or_member_epoch": generation, "member_id": member}
        return self.ask(COMMIT, version, topics=[topic], **facts)

    def heartbeat(self, group: str, member: str, *topics: str) -> Any:
        return self.ask(
            CONSUMER_HEARTBEAT,
            1,
            group_id=group,
            member_id=member,
            member_epoch=0,
            rebalance_timeout=30_000,
            subscribed_topic_names=topics,
            topic_partitions=[],
        )

    def produce(self, topic: str, batch: bytes) -> Any:
        return self._client.produce(topic, batch)


def same(brokers: tuple[Broker, Broker], answer: Callable[[Broker], Any]) -> Any:
    kafkas, ours = (answer(broker) for broker in brokers)
    if isinstance(ours, dict):
        different = {case: (ours[case], told) for case, told in kafkas.items() if ours[case] != told}
        assert not different, f"ours and Kafka's: {different}"
    assert ours == kafkas, f"ours {ours}, Kafka's {kafkas}"
    return ours
