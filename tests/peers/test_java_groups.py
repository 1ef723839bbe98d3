"""Groups of Kafka's own Java consumers on Lamina: eager, cooperative and the consumer protocol (KIP-848)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.broker.process import eventually
from tests.peers.driver import Driver, Event, Member, Record
from tests.peers.kafka import driver_of
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PARTITIONS = 30
SESSION_MS = 6000
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
CLASSIC = {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "500"}
ASSIGNORS = "org.apache.kafka.clients.consumer."
KINDS: Mapping[str, Mapping[str, str]] = {
    "eager": CLASSIC | {"partition.assignment.strategy": f"{ASSIGNORS}RangeAssignor"},
    "cooperative": CLASSIC | {"partition.assignment.strategy": f"{ASSIGNORS}CooperativeStickyAssignor"},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    with Lamina(tmp_path_factory.mktemp("lamina"), SETTINGS) as broker:
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()


@pytest.fixture(scope="module")
def driver(lamina: Lamina) -> Iterator[Driver]:
    with driver_of(lamina.bootstrap) as connected:
        connected.open_producer("producer", {})
        yield connected


@pytest.fixture
def other(lamina: Lamina) -> Iterator[Driver]:
    """Members in a process of their own, which may be stopped and killed."""
    with driver_of(lamina.bootstrap) as connected:
        yield connected


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def send(driver: Driver, topic: str, count: int = 2) -> None:
    for partition in range(PARTITIONS):
        driver.send("producer", topic, [Record(None, b"value")] * count, partition)


def shares(members: Mapping[str, Member]) -> list[int]:
    return sorted(len(member.owned) for member in members.values())


def wait_for_shares(
    drivers: Sequence[Driver], expected: Sequence[int], of: Callable[[str], bool] = lambda _: True
) -> None:
    def found() -> list[int]:
        return sorted(
            count
            for driver in drivers
            for count in shares({name: member for name, member in driver.members().items() if of(name)})
        )

    eventually(lambda: found() == sorted(expected), 120)


def check_owners(histories: Sequence[Sequence[Event]]) -> None:
    """No partition is ever given to a member while another has it.

    A member that lost its partitions hears of it late, when they are somebody else's already; what it does then is
    fenced by the broker.
    """
    changes: list[tuple[int, int, int, int]] = []
    for owner, events in enumerate(histories):
        for event in events:
            if event.kind in ("assigned", "revoked"):
                order = 1 if event.kind == "assigned" else 0
                changes += [(event.at_ns, order, partition, owner) for partition in event.partitions]
    owners: dict[int, int] = {}
    for at_ns, is_assigned, partition, owner in sorted(changes):
        if is_assigned:
            assert owners.get(partition) is None, f"partition {partition} had two owners at {at_ns}"
            owners[partition] = owner
        elif owners.get(partition) == owner:
            del owners[partition]


def test_one_member_becomes_ten_and_then_three(driver: Driver, kind: str) -> None:
    topic = f"grown-{kind}"
    driver.create_topic(topic, partitions=PARTITIONS)
    send(driver, topic)
    names = [f"{topic}-{number}" for number in range(10)]
    ours: Callable[[str], bool] = lambda name: name.startswith(topic)  # noqa: E731
    driver.join(names[0], topic, topic, KINDS[kind])
    wait_for_shares([driver], [PARTITIONS], ours)
    for name in names[1:]:
        driver.join(name, topic, topic, KINDS[kind])
    wait_for_shares([driver], [3] * 10, ours)
    send(driver, topic)
    eventually(lambda: sum(driver.group_offsets(topic).values()) == 4 * PARTITIONS, 60)
    before_leaving = {name: member for name, member in driver.members().items() if ours(name)}
    for name in names[3:]:
        driver.leave(name)
    wait_for_shares([driver], [10] * 3, ours)
    send(driver, topic)
    eventually(lambda: sum(driver.group_offsets(topic).values()) == 6 * PARTITIONS, 60)
    at_the_end = before_leaving | {name: member for name, member in driver.members().items() if ours(name)}
    # Of those that left the last revocation is not known: what was before is checked.
    check_owners([before_leaving[name].events for name in names])
    read: dict[int, set[int]] = {}
    for member in at_the_end.values():
        for partition, offsets in member.read.items():
            read.setdefault(partition, set()).update(offsets)
    assert all(set(range(4)) <= offsets for offsets in read.values())
    assert len(read) == PARTITIONS
    for name in names[:3]:
        driver.leave(name)


def test_partitions_of_a_killed_member_go_to_the_others(driver: Driver, other: Driver, kind: str) -> None:
    topic = f"killed-{kind}"
    driver.create_topic(topic, partitions=PARTITIONS)
    send(driver, topic)
    driver.join(topic, topic, topic, KINDS[kind])
    wait_for_shares([driver], [PARTITIONS], topic.__eq__)
    other.join(topic, topic, topic, KINDS[kind])
    wait_for_shares([driver, other], [15, 15], topic.__eq__)
    other.signal(signal.SIGKILL)
    wait_for_shares([driver], [PARTITIONS], topic.__eq__)
    send(driver, topic)
    eventually(lambda: sum(driver.group_offsets(topic).values()) == 4 * PARTITIONS, 60)
    driver.leave(topic)


def test_a_member_that_was_stopped_is_fenced_and_comes_back(driver: Driver, other: Driver, kind: str) -> None:
    topic = f"stopped-{kind}"
    driver.create_topic(topic, partitions=PARTITIONS)
    send(driver, topic)
    driver.join(topic, topic, topic, KINDS[kind])
    other.join(topic, topic, topic, KINDS[kind])
    wait_for_shares([driver, other], [15, 15], topic.__eq__)
    stopped_ns = time.monotonic_ns()
    other.signal(signal.SIGSTOP)
    try:
        wait_for_shares([driver], [PARTITIONS], topic.__eq__)
    finally:
        other.signal(signal.SIGCONT)
    wait_for_shares([driver, other], [15, 15], topic.__eq__)
    said = [event.kind for event in other.members()[topic].events if event.at_ns > stopped_ns]
    assert "lost" in said
    send(driver, topic)
    eventually(lambda: sum(driver.group_offsets(topic).values()) == 4 * PARTITIONS, 60)
    driver.leave(topic)


def test_a_static_member_that_bounces_disturbs_nobody(driver: Driver, kind: str) -> None:
    topic = f"static-{kind}"
    driver.create_topic(topic, partitions=PARTITIONS)
    names = [f"{topic}-{number}" for number in range(2)]
    configs = {name: {**KINDS[kind], "group.instance.id": name} for name in names}
    for name in names:
        driver.join(name, topic, topic, configs[name])
    wait_for_shares([driver], [15, 15], names.__contains__)
    if kind != "consumer":
        # Each is told of every generation; the one that was told first must not be taken for the last.
        eventually(lambda: len({driver.members()[name].events[-1].generation for name in names}) == 1, 60)
    before = driver.members()
    driver.leave(names[1])
    driver.join(names[1], topic, topic, configs[names[1]])
    eventually(lambda: driver.members()[names[1]].owned == before[names[1]].owned, 60)
    after = driver.members()
    assert after[names[0]].events == before[names[0]].events
    for name in names:
        driver.leave(name)


def test_a_broker_that_is_killed_in_a_rebalance_loses_nothing(tmp_path: Path, kind: str) -> None:
    topic = f"survived-{kind}"
    names = [f"{topic}-{number}" for number in range(5)]
    with Lamina(tmp_path, SETTINGS) as broker, driver_of(broker.bootstrap) as driver:
        driver.open_producer("producer", {})
        driver.create_topic(topic, partitions=PARTITIONS)
        send(driver, topic)
        driver.join(names[0], topic, topic, KINDS[kind])
        eventually(lambda: sum(driver.group_offsets(topic).values()) == 2 * PARTITIONS, 60)
        for name in names[1:]:
            driver.join(name, topic, topic, KINDS[kind])
        broker.kill()
        broker.start()
        assert sum(driver.group_offsets(topic).values()) == 2 * PARTITIONS
        wait_for_shares([driver], [6] * 5)
        send(driver, topic)
        eventually(lambda: sum(driver.group_offsets(topic).values()) == 4 * PARTITIONS, 60)
        read: dict[int, list[int]] = {}
        for member in driver.members().values():
            for partition, offsets in member.read.items():
                read.setdefault(partition, []).extend(offsets)
        assert {partition: sorted(offsets) for partition, offsets in read.items()} == {
            partition: list(range(4)) for partition in range(PARTITIONS)
        }
        assert "Traceback" not in broker.logged()
