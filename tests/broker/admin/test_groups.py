"""What the admin listener and the metrics say of groups."""

from collections.abc import Callable, Iterator
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.broker.admin.asking import admin_address, get, refused
from tests.broker.process import BrokerProcess, eventually

CLASSIC, NEW, SIMPLE = "a classic group", "new", "simple"


def member(broker: BrokerProcess, group: str, **config: object) -> Consumer:
    return Consumer({"bootstrap.servers": broker.address, "group.id": group, "enable.auto.commit": False, **config})


@pytest.fixture
def grouped(own_broker: Callable[..., BrokerProcess]) -> Iterator[BrokerProcess]:
    """A broker with a group of each kind."""
    broker = own_broker("--set", "group.initial.rebalance.delay.ms=0", "--set", "offsets.topic.num.partitions=4")
    producer = Producer({"bootstrap.servers": broker.address})
    for _ in range(5):
        producer.produce("t", b"x", partition=0)
    producer.flush()
    members = [member(broker, CLASSIC), member(broker, NEW, **{"group.protocol": "consumer"})]
    for one in members:
        one.subscribe(["t"])

    def have_all() -> bool:
        for one in members:
            one.poll(0.01)
        return all(one.assignment() for one in members)

    eventually(have_all)
    for one in (*members, member(broker, SIMPLE)):
        one.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    yield broker
    for one in members:
        one.close()


def test_groups_their_members_and_their_lag(grouped: BrokerProcess) -> None:
    listed = {one["group"]: one for one in get(grouped, "/v1/groups")["groups"]}
    assert {name: (one["type"], one["state"], one["members"]) for name, one in listed.items()} == {
        CLASSIC: ("classic", "Stable", 1),
        NEW: ("consumer", "Stable", 1),
        SIMPLE: ("classic", "Empty", 0),
    }
    page = get(grouped, "/v1/groups?limit=1")
    assert [one["group"] for one in page["groups"]] == [CLASSIC]
    assert page["next_after"] == CLASSIC

    classic = get(grouped, "/v1/groups/a%20classic%20group")
    [only] = classic["members"]
    assert (classic["generation"], classic["protocol"], classic["leader"]) == (1, "range", only["member_id"])
    assert (only["client_id"], only["client_host"]) == ("rdkafka", "127.0.0.1")
    assert only["assigned"] == [{"topic": "t", "partitions": [0]}]

    new = get(grouped, f"/v1/groups/{NEW}")
    [only] = new["members"]
    assert new["epoch"] == new["target_epoch"] == only["epoch"]
    assert only["assigned"] == only["target"] == [{"topic": "t", "partitions": [0]}]
    assert (new["assignor"], only["topics"], only["is_classic"]) == ("uniform", ["t"], False)

    [row] = get(grouped, f"/v1/groups/{SIMPLE}/offsets")["offsets"]
    assert (row["topic"], row["partition"], row["offset"], row["high_watermark"], row["lag"]) == ("t", 0, 2, 5, 3)
    assert "none" in refused(grouped, "/v1/groups/none", 404)
    assert "none" in refused(grouped, "/v1/groups/none/offsets", 404)

    host, port = admin_address(grouped)
    with urlopen(f"http://{host}:{port}/metrics", timeout=30) as answer:
        lines = set(answer.read().decode().splitlines())
    assert lines >= {
        'lamina_groups{state="Stable",type="classic"} 1.0',
        'lamina_groups{state="Empty",type="classic"} 1.0',
        'lamina_groups{state="Stable",type="consumer"} 1.0',
        'lamina_group_members{type="consumer"} 1.0',
        "lamina_group_offsets 3.0",
        "lamina_group_committed_offsets_total 3.0",
        'lamina_group_rebalances_total{type="classic"} 1.0',
        'lamina_coordinator_partitions{state="active"} 4.0',
        'lamina_coordinator_partitions{state="loading"} 0.0',
        "lamina_coordinator_load_seconds_count 4.0",
    }


def test_without_any_group_there_is_none(broker: BrokerProcess) -> None:
    assert "groups" in get(broker, "/v1/groups")
    assert refused(broker, "/v1/groups/never", 404)


def test_somebody_who_is_no_member_cannot_commit_for_a_group_that_has_some(grouped: BrokerProcess) -> None:
    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        member(grouped, CLASSIC).commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
