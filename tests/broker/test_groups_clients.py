"""Groups of real clients against a real broker: who comes, goes, dies and comes back, and what it costs the others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lamina.errors import ErrorCode
from lamina.wire.versions import request_schema
from tests.broker.admin.asking import get
from tests.broker.group_members import Member, check_one_owner, wait_for_shares, wait_until
from tests.broker.in_process import build
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient

GROUP = "g"
SESSION_MS = 4_000
LONG_SESSION_MS = 60_000
"""Where nobody is to be taken for dead, however slowly a broker or a member comes back."""
PARTITIONS = 12
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "4",
    "lamina.admin.listeners": "127.0.0.1:0",
}
CLASSIC: dict[str, Any] = {"group.id": GROUP, "heartbeat.interval.ms": 200}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {**CLASSIC, "partition.assignment.strategy": "range"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.id": GROUP, "group.protocol": "consumer"},
}
ONE_NOW = [
    protocol if protocol == "consumer" else pytest.param(protocol, marks=pytest.mark.long) for protocol in PROTOCOLS
]
"""Each scene with one protocol, and with the others in ``make faults``."""
PYTHON_CONFIG = {"group_id": GROUP, "session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 200}


class Scene:
    """A broker, a topic, members and somebody who writes."""

    def __init__(self, broker: BrokerProcess, session_ms: int) -> None:
        self.broker = broker
        broker.keep_port()
        self._classic = {"session.timeout.ms": session_ms}
        self.members: list[Member] = []
        self.sent: list[str] = []
        self._producer = Producer(
            {"bootstrap.servers": broker.address, "reconnect.backoff.max.ms": 200, "log_level": 0}
        )
        self.make_topics("t")

    def make_topics(self, *names: str, partitions: int = PARTITIONS) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.address})
        for made in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
            made.result(60)

    def member(
        self,
        config: dict[str, Any],
        client: str = "librdkafka",
        topics: tuple[str, ...] = ("t",),
        instance: str | None = None,
    ) -> Member:
        session = self._classic if "partition.assignment.strategy" in config else {}
        static = {} if instance is None else {"group.instance.id": instance}
        member = Member(client, self.broker.address, list(topics), {**config, **session, **static})
        self.members.append(member)
        return member

    def write(self, count: int = 24) -> None:
        """To every partition in turn; done when the broker has them."""
        for number in range(count):
            value = f"{len(self.sent)}"
            self.sent.append(value)
            self._producer.produce("t", value.encode(), partition=number % PARTITIONS)
        assert self._producer.flush(60) == 0

    def wait_for_all_read(self) -> None:
        def unread() -> set[str]:
            return set(self.sent) - {value for member in self.members for value in member.values}

        wait_until(lambda: not unread(), unread)

    def committed(self) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": GROUP})
        found = consumer.committed([TopicPartition("t", index) for index in range(PARTITIONS)], timeout=30)
        consumer.close()
        return [one.offset for one in found]

    def described(self) -> Any:
        return get(self.broker, f"/v1/groups/{GROUP}")

    def generation(self) -> int:
        described = self.described()
        return int(described["generation" if described["type"] == "classic" else "epoch"])

    def wait_for_commits(self) -> None:
        """Everything that was written was also committed."""
        expected = [len(self.sent) // PARTITIONS] * PARTITIONS
        wait_until(lambda: self.committed() == expected, self.committed)


@contextmanager
def a_scene(own_broker: Callable[..., BrokerProcess], session_ms: int) -> Iterator[Scene]:
    settings = {**SETTINGS, "group.consumer.session.timeout.ms": str(session_ms)}
    made = Scene(own_broker(*(part for pair in settings.items() for part in ("--set", "=".join(pair)))), session_ms)
    yield made
    for member in made.members:
        member.kill()
    assert not [line for line in made.broker.log if "Traceback" in line], made.broker.log


@pytest.fixture
def scene(own_broker: Callable[..., BrokerProcess]) -> Iterator[Scene]:
    with a_scene(own_broker, SESSION_MS) as made:
        yield made


@pytest.fixture
def scene_of_long_sessions(own_broker: Callable[..., BrokerProcess]) -> Iterator[Scene]:
    with a_scene(own_broker, LONG_SESSION_MS) as made:
        yield made


@pytest.mark.parametrize("protocol", ONE_NOW)
def test_from_one_member_to_five_to_two_every_partition_has_one_owner_and_every_record_a_reader(
    scene: Scene, protocol: str
) -> None:
    config = PROTOCOLS[protocol]
    scene.write()
    first = scene.member(config)
    wait_for_shares([first], PARTITIONS)
    scene.write()
    five = [first, *(scene.member(config) for _ in range(4))]
    wait_for_shares(five, PARTITIONS)
    scene.write()
    five[1].kill()
    five[2].stop()
    wait_for_shares([first, five[3], five[4]], PARTITIONS)
    scene.write()
    scene.wait_for_all_read()

    zombie = five[4]
    zombie.say("hold")
    zombie.wait("hold")
    zombie.freeze()
    two = [first, five[3]]
    wait_for_shares(two, PARTITIONS)
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    before = len(zombie.events)
    zombie.say("commit")
    zombie.thaw()
    assert zombie.wait("commit_failed", before)["code"] in (
        "UNKNOWN_MEMBER_ID",
        "ILLEGAL_GENERATION",
        "REBALANCE_IN_PROGRESS",
        "STALE_MEMBER_EPOCH",
        "FENCED_MEMBER_EPOCH",
    )
    scene.wait_for_commits()
    zombie.kill()
    check_one_owner(scene.members)


@pytest.mark.parametrize("protocol", ONE_NOW)
@pytest.mark.parametrize("ending", ["clean", "killed"])
def test_a_stable_group_does_not_notice_that_the_broker_restarts(
    scene_of_long_sessions: Scene, protocol: str, ending: str
) -> None:
    scene = scene_of_long_sessions
    members = [scene.member(PROTOCOLS[protocol]) for _ in range(2)]
    wait_for_shares(members, PARTITIONS)
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    wait_until(lambda: scene.described()["state"] == "Stable")
    changes = [member.changes for member in members]
    generation = scene.generation()
    if ending == "clean":
        scene.broker.stop()
    else:
        scene.broker.kill()
    scene.broker.start()
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    assert scene.generation() == generation
    assert [member.changes for member in members] == changes
    assert all(len(member.values) == len(set(member.values)) for member in members), "nothing was read twice"


@pytest.mark.parametrize("protocol", ONE_NOW)
def test_a_broker_that_dies_amid_a_rebalance_finds_its_way(scene: Scene, protocol: str) -> None:
    config = PROTOCOLS[protocol]
    members = [scene.member(config)]
    wait_for_shares(members, PARTITIONS)
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    generation = scene.generation()
    members.append(scene.member(config))
    members[1].wait("started")
    wait_until(lambda: scene.described()["state"] != "Stable" or scene.generation() > generation)
    scene.broker.kill()
    scene.broker.start()
    wait_for_shares(members, PARTITIONS)
    assert scene.generation() > generation
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    check_one_owner(members)


@pytest.mark.parametrize("protocol", ONE_NOW)
def test_a_static_member_bounces_and_nobody_notices(scene_of_long_sessions: Scene, protocol: str) -> None:
    scene = scene_of_long_sessions
    config = PROTOCOLS[protocol]
    stays = scene.member(config, instance="stays")
    bounces = scene.member(config, instance="bounces")
    wait_for_shares([stays, bounces], PARTITIONS)
    wait_until(lambda: scene.described()["state"] == "Stable")
    changes, generation, owned = stays.changes, scene.generation(), bounces.owned
    if protocol == "consumer":
        bounces.stop()
    else:
        bounces.kill()
    again = scene.member(config, instance="bounces")
    wait_until(lambda: again.owned == owned, lambda: again.events)
    scene.write()
    scene.wait_for_all_read()
    assert stays.changes == changes
    assert scene.generation() == generation


@pytest.mark.long
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_other_clients_come_go_and_die(scene: Scene, client: str) -> None:
    scene.write()
    first = scene.member(PYTHON_CONFIG, client)
    wait_for_shares([first], PARTITIONS)
    second, third = (scene.member(PYTHON_CONFIG, client) for _ in range(2))
    wait_for_shares([first, second, third], PARTITIONS)
    scene.write()
    scene.wait_for_all_read()
    second.stop()
    wait_for_shares([first, third], PARTITIONS)
    third.kill()
    wait_for_shares([first], PARTITIONS)
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    check_one_owner(scene.members)


def test_members_of_both_protocols_share_a_group_while_it_changes(scene: Scene) -> None:
    old = scene.member(PROTOCOLS["cooperative"])
    wait_for_shares([old], PARTITIONS)
    new = scene.member(PROTOCOLS["consumer"])
    wait_for_shares([old, new], PARTITIONS)
    assert scene.described()["type"] == "consumer"
    scene.write()
    scene.wait_for_all_read()
    new.stop()
    wait_for_shares([old], PARTITIONS)
    assert scene.described()["type"] == "classic"
    scene.write()
    scene.wait_for_all_read()
    scene.wait_for_commits()
    check_one_owner(scene.members)


def test_a_regular_expression_is_resolved_by_the_broker(scene: Scene) -> None:
    scene.make_topics("foo-1", "foo-2", "bar", partitions=2)
    members = [scene.member(PROTOCOLS["consumer"], topics=("^foo.*",)) for _ in range(2)]
    wait_for_shares(members, 4)
    assert {topic for member in members for topic, _ in member.owned} == {"foo-1", "foo-2"}


@pytest.mark.long
def test_an_expression_that_others_choke_on_holds_nobody_up(scene: Scene) -> None:
    names = [f"{'a' * 40}-{number}" for number in range(2_000)]
    scene.make_topics(*names, partitions=1)
    scene.make_topics("a" * 40, partitions=1)
    greedy = scene.member(PROTOCOLS["consumer"], topics=("^(a+)+$",))
    other = scene.member({**PROTOCOLS["consumer"], "group.id": "other"})
    wait_for_shares([other], PARTITIONS)
    scene.write()
    scene.wait_for_all_read()
    wait_until(lambda: greedy.owned == {("a" * 40, 0)}, lambda: greedy.events)


def test_whoever_waits_for_a_group_is_answered_when_the_broker_stops(scene: Scene) -> None:
    with RawClient(scene.broker) as first, RawClient(scene.broker) as second:
        find = build(request_schema(10, 3), {"key": GROUP, "key_type": 0})
        assert first.ask(find).error_code == 0
        join = build(
            request_schema(11, 3),
            {
                "group_id": GROUP,
                "session_timeout": 10_000,
                "rebalance_timeout": 600_000,
                "protocol_type": "any",
                "protocols": [{"name": "p", "metadata": b""}],
            },
        )

        def joined() -> bool:
            return bool(first.ask(join).error_code == 0)

        wait_until(joined)
        second.begin(join)
        wait_until(lambda: scene.described()["state"] == "PreparingRebalance")
        scene.broker.stop()
        assert second.answer(11, 3).error_code == ErrorCode.NOT_COORDINATOR
