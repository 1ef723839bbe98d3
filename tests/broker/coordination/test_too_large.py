"""Decisions that the log refuses because they are too large: one client is told, and nobody else notices."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.broker.coordination.shard import Shard
from lamina.broker.partitions.partition import Partition
from lamina.errors import ErrorCode
from lamina.image.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.broker.in_process import InProcessBroker
from tests.broker.requests.handlers.groups_world import CONSUMER_DESCRIBE, GROUP, LIST, Groups
from tests.broker.transacting import Transacting

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
TOO_MANY_NAMES = [f"{number:0>200}" for number in range(6_000)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", SETTINGS)
    opened.create("t", 2)
    yield opened
    opened.close()


@pytest.fixture
def groups(broker: InProcessBroker) -> Groups:
    return Groups(broker).found()


def shard_of_groups(groups: Groups) -> Shard:  # type: ignore[type-arg]
    return groups.broker.parts.groups.runtime.shard(0)


def take_only(broker: InProcessBroker, topic: str, size_bytes: int) -> Partition:
    """Let the log of the topic's only partition refuse larger batches from now on."""
    partition = broker.parts.partitions.get(topic, 0)
    partition.configure(replace(partition.log.config, max_message_bytes=size_bytes), 1 << 20)
    return partition


# Groups


def test_a_new_member_with_too_many_names_is_refused_and_nobody_else_notices(groups: Groups) -> None:
    neighbour = groups.join(group_id="neighbour")
    assert groups.sync(neighbour, group_id="neighbour").error_code == 0
    machine = shard_of_groups(groups).machine
    refused = groups.consumer("m", 0, *TOO_MANY_NAMES)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert refused.error_message
    assert shard_of_groups(groups).machine is machine, "nothing was loaded again"
    assert groups.heartbeat(neighbour.member_id, neighbour.generation_id, group_id="neighbour") == 0
    assert [one.group_id for one in groups.broker.ask(LIST, 5).groups] == ["neighbour"], "no group came of it"
    assert groups.consumer("m", 0, "t").error_code == 0


def test_a_member_that_subscribes_to_too_many_names_stays_as_it_was(groups: Groups) -> None:
    joined = groups.consumer("m", 0, "t")
    machine = shard_of_groups(groups).machine
    refused = groups.consumer("m", joined.member_epoch, subscribed_topic_names=TOO_MANY_NAMES)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shard_of_groups(groups).machine is machine
    stays = groups.consumer("m", joined.member_epoch)
    assert (stays.error_code, stays.member_epoch) == (0, joined.member_epoch)
    (described,) = groups.broker.ask(CONSUMER_DESCRIBE, 1, group_ids=[GROUP]).groups
    assert described.members[0].subscribed_topic_names == ("t",)


def test_a_refused_upgrade_leaves_the_classic_group_with_those_who_wait_in_it(groups: Groups) -> None:
    first = groups.stable()
    waiting = groups.broker.begin(11, 3, **groups.join_facts())
    groups.broker.turn()
    assert groups.consumer("m", 0, *TOO_MANY_NAMES).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.join(first.member_id).generation_id == 2
    assert groups.broker.finish(waiting).generation_id == 2


def test_a_classic_member_of_a_consumer_group_with_too_much_to_say_is_refused(groups: Groups) -> None:
    joined = groups.consumer("m", 0, "t")
    machine = shard_of_groups(groups).machine
    refused = groups.join("", *TOO_MANY_NAMES)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shard_of_groups(groups).machine is machine
    assert groups.consumer("m", joined.member_epoch).error_code == 0
    assert groups.join("", "t").error_code == 0


def test_a_session_that_ends_while_the_log_refuses_the_records_ends_later(groups: Groups) -> None:
    groups.consumer("m", 0, "t")
    shard = shard_of_groups(groups)
    machine, partition = shard.machine, take_only(groups.broker, CONSUMER_OFFSETS, 100)
    shard._timer_due((GROUP, "session", "m"))
    assert shard.machine is machine
    take_only(groups.broker, CONSUMER_OFFSETS, partition.log.config.segment_bytes)
    at_ms, _ = shard._timers._timers[GROUP, "session", "m"]
    assert at_ms <= groups.broker.parts.clocks.monotonic_ms() + 60_000, "it is tried again"
    shard._timer_due((GROUP, "session", "m"))
    assert machine is not None
    assert machine.describe_consumers(GROUP).members == ()


def test_an_expression_that_stands_for_too_many_topics_is_not_resolved_again_and_again(groups: Groups) -> None:
    groups.broker.create("x" * 249)
    shard = shard_of_groups(groups)
    machine = shard.machine
    joined = groups.consumer("m", 0, subscribed_topic_names=None, subscribed_topic_regex="x*")
    take_only(groups.broker, CONSUMER_OFFSETS, 200)
    coordinator = groups.broker.parts.groups
    groups.broker.run_until(lambda: not coordinator._resolving)
    assert shard.machine is machine, "nothing was loaded again"
    groups.consumer("m", joined.member_epoch)
    assert not coordinator._resolving
    assert groups.consumer("m", joined.member_epoch).error_code == 0


# Transactions


@pytest.fixture
def many_open(broker: InProcessBroker) -> list[Transacting]:
    """Transactions in two topics, whose records together are larger than the log takes from now on."""
    broker.create("u")
    everybody = [Transacting(broker, f"{number:0>200}") for number in range(20)]
    everybody[0].find()
    for one in everybody:
        assert one.add(one.started(), ("t", 0), ("u", 0)) == [0, 0]
    return everybody


def test_a_deleted_topic_leaves_many_transactions_in_more_than_one_batch(
    broker: InProcessBroker, many_open: list[Transacting]
) -> None:
    shard = broker.parts.transactions.runtime.shard(0)
    machine = shard.machine
    take_only(broker, TRANSACTION_STATE, 1_000)
    broker.delete("u")
    assert shard.machine is machine, "nothing was loaded again"
    assert {topic.topic for one in many_open for topic in one.describe().topics} == {"t"}


def test_loading_many_transactions_of_a_deleted_topic_writes_more_than_one_batch(
    broker: InProcessBroker, many_open: list[Transacting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.parts.transactions, "topics_gone", lambda topics: None)
    broker.delete("u")
    take_only(broker, TRANSACTION_STATE, 1_000)
    shard = broker.parts.transactions.runtime.shard(0)
    shard.load()
    broker.settle()
    machine = shard.machine
    broker.turn()
    assert shard.machine is machine, "nothing was loaded again"
    assert {topic.topic for one in many_open for topic in one.describe().topics} == {"t"}


def test_partitions_that_make_a_transaction_too_large_are_refused_and_it_goes_on(
    broker: InProcessBroker, many_open: list[Transacting]
) -> None:
    orders = Transacting(broker)
    me = orders.started()
    shard = broker.parts.transactions.runtime.shard(0)
    machine, partition = shard.machine, take_only(broker, TRANSACTION_STATE, 100)
    assert orders.add(me, ("t", 1)) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert shard.machine is machine
    assert machine is not None
    assert orders.id not in machine._began_ms, "no transaction has begun whose time could run out"
    take_only(broker, TRANSACTION_STATE, partition.log.config.segment_bytes)
    assert orders.add(me, ("t", 1)) == [0]


# Memory


def test_loading_takes_nothing_out_of_the_garbage_collectors_sight(groups: Groups) -> None:
    for _ in range(600):
        groups.commit(("t", 0, 1), group_id=f"g{_}")
    frozen = gc.get_freeze_count()
    shard_of_groups(groups).load()
    groups.settle()
    assert gc.get_freeze_count() == frozen
