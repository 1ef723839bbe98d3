"""Java consumers that read from the copy in their rack (KIP-392), one rack for each of three Lamina brokers."""

from __future__ import annotations

import re
import sys
import urllib.request
from collections.abc import Iterator, Sequence

import pytest

from tests.broker.process import eventually
from tests.cluster.three_brokers import ALL, WAIT_SECONDS, ThreeBrokers
from tests.peers.driver import Driver, Record
from tests.peers.kafka import driver_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
COUNT = 100


def program_in_a_rack(broker_id: int) -> Sequence[str]:
    """`lamina serve` with one more setting than the other brokers have."""
    setting = f"broker.rack=rack-{broker_id}"
    return (
        sys.executable,
        "-c",
        f"import sys; sys.argv += ['--set', '{setting}']; from lamina.cli import main; main()",
    )


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    with ThreeBrokers(tmp_path_factory.mktemp("cluster"), SELECTOR, program_in_a_rack).running() as brokers:
        yield brokers


@pytest.fixture(scope="module")
def driver(three_brokers: ThreeBrokers) -> Iterator[Driver]:
    with driver_of(three_brokers.bootstrap) as connected:
        connected.open_producer("producer", {})
        yield connected


def served_bytes(brokers: ThreeBrokers, topic: str) -> dict[int, float]:
    """What each broker has given consumers of a topic."""
    found: dict[int, float] = {}
    for broker in brokers.cluster.brokers():
        assert broker.started is not None
        with urllib.request.urlopen(f"http://{broker.started.admin_address}/metrics") as answer:
            text = answer.read().decode()
        match = re.search(rf'^lamina_topic_out_bytes_total\{{topic="{topic}"\}} (\S+)', text, re.MULTILINE)
        found[broker.id] = float(match[1]) if match else 0.0
    return found


def send(driver: Driver, topic: str) -> None:
    driver.send("producer", topic, [Record(None, b"value")] * COUNT)


def read_by(driver: Driver, member: str) -> list[int]:
    """Offsets in the order in which they came first: what was not committed when its broker died may come again."""
    return list(dict.fromkeys(driver.members()[member].read.get(0, ())))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_reads_from_the_follower_in_its_rack_and_from_another_when_that_dies(
    brokers: ThreeBrokers, driver: Driver, topic: str, protocol: str
) -> None:
    brokers.create_topic(topic)
    leader = brokers.leader(topic)
    near = next(one for one in ALL if one != leader)
    send(driver, topic)
    driver.join(topic, topic, topic, {"client.rack": f"rack-{near}", "group.protocol": protocol})
    eventually(lambda: len(read_by(driver, topic)) == COUNT, WAIT_SECONDS)
    served = served_bytes(brokers, topic)
    assert {broker_id for broker_id, count in served.items() if count} == {near}
    brokers.kill(near)
    send(driver, topic)
    eventually(lambda: len(read_by(driver, topic)) == 2 * COUNT, WAIT_SECONDS)
    assert read_by(driver, topic) == list(range(2 * COUNT))
    driver.leave(topic)


def test_a_consumer_in_the_leaders_rack_or_in_none_reads_from_the_leader(
    brokers: ThreeBrokers, driver: Driver, topic: str
) -> None:
    brokers.create_topic(topic)
    leader = brokers.leader(topic)
    send(driver, topic)
    for number, rack in enumerate((f"rack-{leader}", "rack-absent", "")):
        driver.consume(f"{topic}-{number}", topic, COUNT, {"client.rack": rack})
    assert {broker_id for broker_id, count in served_bytes(brokers, topic).items() if count} == {leader}
