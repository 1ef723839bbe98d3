"""``lamina topics reassign`` with three real brokers."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, ConfigSource, NewTopic

from tests.broker.process import eventually
from tests.cli.running import Lamina, Outcome
from tests.cluster.three_brokers import WAIT_SECONDS, ThreeBrokers

pytestmark = pytest.mark.timeout(180)

Run = Callable[..., Outcome]

RECORD_BYTES = 900_000


@pytest.fixture
def lamina(capsys: pytest.CaptureFixture[str]) -> Lamina:
    return Lamina(capsys)


@pytest.fixture
def reassign(lamina: Lamina, brokers: ThreeBrokers) -> Run:
    return lambda *args: lamina("topics", "reassign", *args, "--bootstrap-server", brokers.bootstrap)


def create(brokers: ThreeBrokers, topic: str, *replicas: Sequence[int]) -> None:
    new = NewTopic(topic, len(replicas), replica_assignment=[list(ids) for ids in replicas])
    brokers.admin.create_topics([new])[topic].result(WAIT_SECONDS)
    eventually(lambda: brokers.replicas(topic) == [tuple(ids) for ids in replicas], WAIT_SECONDS)


def fill(brokers: ThreeBrokers, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
    for _ in range(records):
        producer.produce(topic, b"x" * RECORD_BYTES, partition=0)
    assert producer.flush(WAIT_SECONDS) == 0


def written(path: Path, topic: str, replicas: Mapping[int, Sequence[int]]) -> str:
    partitions = [{"topic": topic, "partition": index, "replicas": list(ids)} for index, ids in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def throttles(brokers: ThreeBrokers, topic: str) -> dict[str, str]:
    """What holds copying back, on the topic and on brokers."""
    resources = [ConfigResource("topic", topic), *(ConfigResource("broker", str(one)) for one in (1, 2, 3))]
    dynamic = (ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value)
    found: dict[str, str] = {}
    for resource in resources:
        entries = brokers.admin.describe_configs([resource])[resource].result(WAIT_SECONDS)
        found |= {
            f"{resource.name} {name}": str(entry.value)
            for name, entry in entries.items()
            if "throttled" in name and entry.source in dynamic
        }
    return found


def test_topics_of_a_single_broker_get_more_replicas(
    reassign: Run, brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    create(brokers, topic, (1,), (1,))
    fill(brokers, topic, 1)
    generated = reassign("--generate", "--brokers", "1,2,3", "--replication-factor", "3", topic)
    (tmp_path / "plan.json").write_text(generated.out)
    done = reassign("--execute", "--file", tmp_path / "plan.json", "--wait")
    assert (done.status, done.err) == (0, "")
    assert [set(replicas) for replicas in brokers.replicas(topic)] == [{1, 2, 3}] * 2


def test_a_generated_plan_is_executed_and_verified(
    reassign: Run, brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    create(brokers, topic, (1,), (1,), (1,), (1,))
    fill(brokers, topic, 1)
    generated = reassign("--generate", "--brokers", "2,3", topic)
    assert "4 partitions to copy to other brokers (900.1 kB)" in generated.err
    (tmp_path / "plan.json").write_text(generated.out)
    before = tmp_path / "before.json"
    plan = ("--file", tmp_path / "plan.json")
    assert reassign("--verify", *plan).status == 1
    done = reassign("--execute", *plan, "--wait", "--save-current", before)
    assert (done.status, done.err) == (0, "")
    assert [line.split()[:2] for line in done.out.splitlines()[1:]] == [
        [f"{topic}-{index}", "complete"] for index in range(4)
    ]
    assert sorted(brokers.replicas(topic)) == [(2,), (2,), (3,), (3,)]
    assert reassign("--verify", *plan).status == 0
    assert reassign("--execute", "--file", before, "--wait").status == 0
    assert set(brokers.replicas(topic)) == {(1,)}


def test_a_throttle_is_raised_and_removed_when_all_is_complete(
    reassign: Run, brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    create(brokers, topic, (1,))
    fill(brokers, topic, 3)
    plan = ("--file", written(tmp_path / "plan.json", topic, {0: (1, 2)}))
    begun = reassign("--execute", *plan, "--throttle", "1kB/s", "--json")
    assert (begun.status, [row["state"] for row in begun.objects]) == (0, ["in_progress"])
    assert throttles(brokers, topic) == {
        f"{topic} leader.replication.throttled.replicas": "0:1",
        f"{topic} follower.replication.throttled.replicas": "0:2",
        **{f"{one} {side}.replication.throttled.rate": "1000" for one in (1, 2) for side in ("leader", "follower")},
    }
    (listed,) = reassign("--list", "--json").objects
    assert (listed["replicas"], listed["adding_replicas"], listed["removing_replicas"]) == ([1, 2], [2], [])
    refused = reassign("--execute", *plan)
    assert (refused.status, refused.out) == (1, "")
    assert f"other partitions are being reassigned: {topic}-0" in refused.err
    assert "not complete yet" in reassign("--verify", *plan).err
    raised = reassign("--execute", *plan, "--additional", "--throttle", "50MB", "--wait", "--json")
    progress = [row for row in raised.objects if row["type"] == "move_progress"]
    assert progress[-1]["completed"] == progress[-1]["partitions"] == 1
    assert progress[-1]["copied_bytes"] == progress[-1]["total_bytes"] > 3 * RECORD_BYTES
    assert (raised.status, raised.objects[-1]["state"]) == (0, "complete")
    assert throttles(brokers, topic) == {}


def test_what_hangs_is_cancelled(reassign: Run, brokers: ThreeBrokers, topic: str, tmp_path: Path) -> None:
    create(brokers, topic, (1,), (2,))
    fill(brokers, topic, 3)
    plan = ("--file", written(tmp_path / "plan.json", topic, {0: (3,), 1: (2,)}))
    assert reassign("--execute", *plan, "--throttle", "1000").status == 0
    cancelled = reassign("--cancel", *plan, "--json")
    assert cancelled.objects == [
        {
            "type": "reassignment",
            "topic": topic,
            "partition": 0,
            "state": "cancelled",
            "replicas": [1],
            "new_replicas": [3],
        }
    ]
    assert (brokers.replicas(topic), throttles(brokers, topic)) == ([(1,), (2,)], {})
    assert "nothing of this plan is under way" in reassign("--cancel", *plan).err
    assert "no partition is being reassigned" in reassign("--list").err


def test_a_plan_that_cannot_be_is_refused_before_anything_begins(
    reassign: Run, brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    create(brokers, topic, (1,))
    create(brokers, other := f"{topic}-other", (1, 2))
    too_few = reassign("--generate", "--brokers", "3", other)
    assert (too_few.status, too_few.out) == (1, "")
    assert f"more replicas than brokers are named: {other}-0; name more --brokers" in too_few.err
    for replicas, says in (({0: (1, 9)}, "there is no broker 9"), ({0: (2,), 7: (2,)}, f"no partition {topic}-7")):
        refused = reassign("--execute", "--file", written(tmp_path / "plan.json", topic, replicas))
        assert refused.status == 1
        assert says in refused.err
    assert brokers.replicas(topic) == [(1,)]
