"""Groups go from Kafka to Lamina and back with the files of ``__consumer_offsets``, and know nothing of it."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lamina.wire.versions import nested_schema, request_schema
from tests.broker.process import eventually
from tests.broker.raw import RawClient
from tests.cli.running import run_process
from tests.peers.driver import Driver, Record
from tests.peers.kafka import Kafka, driver_of
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PROTOCOLS = ("classic", "consumer")
OFFSET_COMMIT, OFFSET_COMMIT_VERSION = 8, 9
COUNT = 20


@dataclass(frozen=True, slots=True)
class Left:
    """What a Kafka knew of its groups when it was stopped."""

    offsets: dict[str, dict[str, int]]
    descriptions: dict[str, dict[str, Any]]
    generations: dict[str, int]


def describe(bootstrap: str, group: str) -> dict[str, Any]:
    (row,) = run_process("groups", "describe", group, "--json", "--bootstrap-server", bootstrap).objects
    del row["coordinator"]
    return row


def use_groups(driver: Driver, prefix: str) -> dict[str, dict[str, int]]:
    """A group of each protocol that read everything and left; what they committed."""
    for protocol in PROTOCOLS:
        driver.consume(f"{prefix}-{protocol}", "orders", COUNT, {"group.protocol": protocol})
    return {f"{prefix}-{protocol}": driver.group_offsets(f"{prefix}-{protocol}") for protocol in PROTOCOLS}


def write_with_kafka(kafka: Kafka) -> Left:
    with kafka, kafka.driver() as driver:
        driver.create_topic("orders", partitions=2)
        driver.open_producer("producer", {})
        for partition in range(2):
            driver.send("producer", "orders", [Record(None, b"value")] * (COUNT // 2), partition)
        offsets = use_groups(driver, "left")
        for protocol in PROTOCOLS:
            driver.join(f"living-{protocol}", f"living-{protocol}", "orders", {"group.protocol": protocol})
        living = [f"living-{protocol}" for protocol in PROTOCOLS]
        eventually(lambda: all(sum(driver.group_offsets(group).values()) == COUNT for group in living), 60)
        offsets |= {group: driver.group_offsets(group) for group in living}
        generations = {name: member.events[-1].generation for name, member in driver.members().items()}
        descriptions = {group: describe(kafka.bootstrap, group) for group in offsets}
        # They stay members: nobody told the broker that they left.
        driver.signal(signal.SIGKILL)
        kafka.stop()
    return Left(offsets, descriptions, generations)


@dataclass(frozen=True, slots=True)
class Passage:
    kafka: Kafka
    lamina: Lamina
    driver: Driver
    left: Left

    def connect(self) -> socket.socket:
        host, port = self.lamina.bootstrap.split(":")
        return socket.create_connection((host, int(port)), timeout=30)


@pytest.fixture(scope="module")
def passage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Passage]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    left = write_with_kafka(kafka)
    lamina = Lamina(tmp_path_factory.mktemp("lamina"), {"group.initial.rebalance.delay.ms": "0"})
    adopted = run_process("adopt", "--data-dir", lamina.data_directory, kafka.data_directory)
    assert adopted.status == 0, adopted.err
    with lamina, driver_of(lamina.bootstrap) as driver:
        yield Passage(kafka, lamina, driver, left)


def commit_error(passage: Passage, group: str, member_id: str, generation: int) -> int:
    schema: Any = request_schema(OFFSET_COMMIT, OFFSET_COMMIT_VERSION)
    topic_schema = nested_schema(schema, "topics")
    partition = nested_schema(topic_schema, "partitions")(
        partition_index=0, committed_offset=COUNT // 2, committed_leader_epoch=-1, committed_metadata=""
    )
    request = schema(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        topics=(topic_schema(name="orders", partitions=(partition,)),),
    )
    with RawClient(passage) as client:
        return int(client.ask(request).topics[0].partitions[0].error_code)


def test_members_keep_their_generation_and_their_partitions(passage: Passage) -> None:
    for group, generation in passage.left.generations.items():
        described = describe(passage.lamina.bootstrap, group)
        assert described == passage.left.descriptions[group]
        (member,) = described["members"]
        assert member["assignment"] == {"orders": [0, 1]}
        assert commit_error(passage, group, member["member_id"], generation) == 0
        assert commit_error(passage, group, member["member_id"], generation + 1) != 0


def test_groups_keep_what_they_committed(passage: Passage) -> None:
    found = {group: passage.driver.group_offsets(group) for group in passage.left.offsets}
    assert found == passage.left.offsets
    for group in ("left-classic", "left-consumer"):
        assert describe(passage.lamina.bootstrap, group) == passage.left.descriptions[group]


def test_groups_go_on_and_back_to_kafka(passage: Passage) -> None:
    offsets = use_groups(passage.driver, "made-by-lamina")
    passage.driver.open_producer("producer", {})
    passage.driver.send("producer", "orders", [Record(None, b"value")] * COUNT)
    # These go on where they were in Kafka.
    offsets |= use_groups(passage.driver, "left")
    assert [sum(offsets[f"left-{protocol}"].values()) for protocol in PROTOCOLS] == [2 * COUNT] * 2
    described = {group: describe(passage.lamina.bootstrap, group) for group in offsets}
    passage.lamina.stop()
    kafka = passage.kafka
    for directory in (passage.lamina.data_directory / "logs").iterdir():
        if directory.is_dir():
            shutil.rmtree(kafka.data_directory / directory.name)
            shutil.copytree(directory, kafka.data_directory / directory.name)
    mark = kafka.mark()
    with kafka, kafka.driver() as driver:
        assert {group: driver.group_offsets(group) for group in offsets} == offsets
        assert {group: describe(kafka.bootstrap, group) for group in offsets} == described
        assert kafka.lines_since(mark, r"ERROR.*(coordinator|__consumer_offsets)") == []
