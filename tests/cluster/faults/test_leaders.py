"""F1 to F5: leaders and controllers that are killed, paused or cut off, and followers that are."""

import threading
from collections import Counter

import pytest
from confluent_kafka.admin import NewTopic

from lamina.cluster.layout import broker_name
from tests.cluster.faults.conftest import MARKS, NewTrial
from tests.cluster.faults.raw_producer import NO_ERROR, RawProducer
from tests.cluster.faults.trial import (
    ELECTED_SECONDS,
    FULL_IN_SYNC_SECONDS,
    SESSION_MS,
    SOON_ELECTED_SECONDS,
    Trial,
)
from tests.cluster.three_brokers import ALL, WAIT_SECONDS
from tests.cluster.verifiable_consumer import read_all

pytestmark = MARKS

T = ("t", 0)
BOUNCES = 5
PAUSED_SECONDS = CUT_SECONDS = 30.0
LAG_MS = 2500
SOON_LAGGING = {"replica.lag.time.max.ms": str(LAG_MS)}
TOPICS_AT_ONCE = 60
ON_THEIR_WAY_SECONDS = 1.0
"""What was sent before a cut may be acknowledged so much later."""


def test_f1_a_leader_is_killed_five_times(new_trial: NewTrial) -> None:
    trial = new_trial()
    trial.create_topic("t", 3)
    with trial.load("t", 3) as load:
        for number in range(BOUNCES):
            load.producer.await_acked(1000)
            killed = trial.watch.leader(T)
            is_refused = number % 2 == 0
            at_ms = trial.kill(killed, is_refused=is_refused)
            trial.await_new_leader(T, killed, SOON_ELECTED_SECONDS if is_refused else ELECTED_SECONDS)
            trial.await_resumed(load.producer, 0, at_ms, ELECTED_SECONDS)
            trial.restart(killed)
            trial.await_in_sync("t", 3)


def test_f2_a_controller_is_killed_while_it_makes_topics_and_moves_leaders(new_trial: NewTrial) -> None:
    trial = new_trial()
    trial.create_topic("t", 3)
    names: list[str] = []
    with trial.load("t", 3) as load:
        for round_number in range(3):
            load.producer.await_acked(1000)
            some = [f"made-{round_number}-{number}" for number in range(TOPICS_AT_ONCE)]
            kill_the_controller_at_work(trial, some)
            names += some
            trial.await_in_sync("t", 3)
    assert_none_is_half_made(trial, names)


def kill_the_controller_at_work(trial: Trial, names: list[str]) -> None:
    """While another broker hands over what it leads, and topics are made."""
    killed = trial.watch.controller
    other = trial.random.choice([broker_id for broker_id in ALL if broker_id != killed])
    trial.story.tell(f"making {len(names)} topics, and restarting broker {other} with SIGTERM")
    admin = trial.brokers.admin
    futures = admin.create_topics([NewTopic(name, 3, 3) for name in names], request_timeout=WAIT_SECONDS)
    moving = threading.Thread(target=trial.brokers.restart, args=[other])
    moving.start()
    trial.brokers.await_stored_topic(f"{names[0].rpartition('-')[0]}-")
    trial.wait(trial.random.uniform(0, 0.3))
    trial.kill(killed)
    trial.story.within(ELECTED_SECONDS, "another controller", lambda: trial.watch.controller not in (killed, -1))
    told = [future.exception(WAIT_SECONDS) for future in futures.values()]
    moving.join()
    trial.restart(killed)
    words = Counter("none" if error is None else str(error) for error in told)
    trial.story.tell(f"the errors of {len(names)} topics: {dict(words)}")
    there = trial.brokers.topic_names()
    for name, error in zip(names, told, strict=True):
        assert error is not None or name in there, f"{name} was said to be made, and is not there"


def assert_none_is_half_made(trial: Trial, names: list[str]) -> None:
    """Each is there with all of its partitions, or can be made."""
    brokers = trial.brokers
    missing = [name for name in names if name not in brokers.topic_names()]
    trial.story.tell(f"{len(names) - len(missing)} of {len(names)} topics are there")
    for name, future in (
        brokers.admin.create_topics([NewTopic(name, 3, 3) for name in missing]) if missing else {}
    ).items():
        assert future.exception(WAIT_SECONDS) is None, f"{name} was half made: {future.exception()}"
    for name in names:
        brokers.await_in_sync(name)
        assert len(brokers.in_sync(name)) == 3, f"{name} has {len(brokers.in_sync(name))} of 3 partitions"


def test_f3_a_leader_sleeps_and_wakes_up_as_a_zombie(new_trial: NewTrial) -> None:
    """It has records that no follower got, and requests lie in its sockets when it wakes."""
    trial = new_trial()
    trial.create_topic("t")
    with trial.load("t") as load:
        load.producer.await_acked(1000)
        zombie = trial.watch.leader(T)
        others = [broker_id for broker_id in ALL if broker_id != zombie]
        address = trial.brokers.address(zombie)
        alone, late, late_all = (
            RawProducer(address, T, acks, name, trial.story)
            for acks, name in ((1, "alone"), (1, "late"), (-1, "late-all"))
        )
        trial.story.tell(f"cutting the way from broker {zombie} to the others")
        trial.proxy.cut([broker_name(zombie)], map(broker_name, others))
        for _ in range(10):
            alone.send()
        assert [alone.answer() for _ in range(10)] == [NO_ERROR] * 10
        trial.pause(zombie)
        paused_ms = trial.story.now_ms()
        for producer in (late, late_all):
            for _ in range(10):
                producer.send()
        trial.await_new_leader(T, zombie)
        trial.heal()
        trial.await_resumed(load.producer, 0, paused_ms, 2 * ELECTED_SECONDS)
        trial.wait(PAUSED_SECONDS - (trial.story.now_ms() - paused_ms) / 1000)
        trial.resume(zombie)
        answers = [producer.answer() for producer in (late, late_all) for _ in range(10)]
        trial.story.tell(f"what lay in its sockets was answered with errors {sorted(set(answers))}")
        trial.await_in_sync("t", 1)
        load.other_sends += alone.sends + late.sends + late_all.sends
    assert NO_ERROR not in answers, answers
    found = set(read_all(trial.brokers.bootstrap, "t")[T].values()) | {read.value for read in load.consumer.reads}
    seen = [send.value for send in load.other_sends if send.value in found]
    assert seen == [], "the tail of the old leader was read"
    trial.brokers.assert_replicas_are_equal("t")


def test_f4_a_follower_is_cut_off_from_the_other_brokers(new_trial: NewTrial) -> None:
    """It still reaches ZooKeeper, so it is alive; it is not the controller."""
    trial = new_trial(SOON_LAGGING)
    controller = trial.watch.controller
    leader, follower = [broker_id for broker_id in ALL if broker_id != controller]
    trial.create_topic("t", leaders=[leader])
    with trial.load("t") as load:
        load.producer.await_acked(1000)
        cut_ms = trial.isolate(follower, [leader, controller], from_zookeeper=False)
        trial.await_in_sync("t", 1, {leader, controller}, LAG_MS / 1000 + 5)
        trial.wait(CUT_SECONDS - (trial.story.now_ms() - cut_ms) / 1000)
        trial.heal()
        trial.await_in_sync("t", 1, ALL, FULL_IN_SYNC_SECONDS)
        load.producer.await_acked(1000)
    longest = load.producer.longest_wait_seconds()
    assert longest <= 5, f"a record waited {longest:.1f} s for its acknowledgement"
    trial.brokers.assert_replicas_are_equal("t")


def test_f5_a_leader_is_cut_off_from_all_but_clients(new_trial: NewTrial) -> None:
    """It can prove its session no more: it stops, with acks=1 too, before another one leads."""
    trial = new_trial(SOON_LAGGING)
    trial.create_topic("t")
    with trial.load("t") as load:
        load.producer.await_acked(1000)
        cut_off = trial.watch.leader(T)
        others = [broker_id for broker_id in ALL if broker_id != cut_off]
        address = trial.brokers.address(cut_off)
        with (
            RawProducer(address, T, 1, "one", trial.story).sending() as one,
            RawProducer(address, T, -1, "all", trial.story).sending() as all_,
        ):
            trial.wait(1)
            cut_ms = trial.isolate(cut_off, others, from_zookeeper=True)
            trial.await_new_leader(T, cut_off)
            elected_ms = next(
                at_ms for at_ms, _, state in trial.watch.changes if state.leader not in (cut_off, -1) and at_ms > cut_ms
            )
            trial.wait(CUT_SECONDS / 2)
            trial.heal()
            trial.await_in_sync("t", 1)
        trial.await_resumed(load.producer, 0, cut_ms, 2 * ELECTED_SECONDS)
        load.other_sends += one.sends + all_.sends
    assert_stopped(trial, one, cut_ms, SESSION_MS / 1000)
    assert_stopped(trial, all_, cut_ms, ON_THEIR_WAY_SECONDS)
    last_ms = max(send.began_ms for send in one.acked)
    assert last_ms < elected_ms, (
        f"acknowledged at {last_ms:.0f} ms, and the next leader was there at {elected_ms:.0f} ms"
    )
    trial.brokers.assert_replicas_are_equal("t")


def assert_stopped(trial: Trial, producer: RawProducer, cut_ms: float, seconds: float) -> None:
    """It acknowledged something before the cut, and nothing that was sent so long after it."""
    late = [send for send in producer.acked if send.began_ms > cut_ms + seconds * 1000]
    last = max(send.began_ms for send in producer.acked)
    trial.story.tell(
        f"{producer.acked[0].producer}: the last one acknowledged was sent {last - cut_ms:.0f} ms after the cut"
    )
    assert late == [], f"{late[0].value!r} was acknowledged at {late[0].ended_ms:.0f} ms, {seconds:g} s after the cut"


@pytest.mark.parametrize("is_controller", [True, False], ids=["controller", "no-controller"])
def test_f5_a_leader_is_cut_off_and_still_reaches_zookeeper(new_trial: NewTrial, is_controller: bool) -> None:
    """It stays the leader, for its session lives, and can replicate to nobody: with acks=all nothing is taken."""
    trial = new_trial(SOON_LAGGING)
    controller = trial.watch.controller
    cut_off = controller if is_controller else next(broker_id for broker_id in ALL if broker_id != controller)
    others = [broker_id for broker_id in ALL if broker_id != cut_off]
    trial.create_topic("t", leaders=[cut_off])
    with trial.load("t") as load:
        load.producer.await_acked(1000)
        with RawProducer(trial.brokers.address(cut_off), T, -1, "all", trial.story).sending() as all_:
            trial.wait(1)
            cut_ms = trial.isolate(cut_off, others, from_zookeeper=False)
            trial.wait(CUT_SECONDS / 2)
            assert {state.leader for _, partition, state in trial.watch.changes if partition == T} == {cut_off}
            trial.heal()
            healed_ms = trial.story.now_ms()
            trial.await_in_sync("t", 1)
            trial.await_resumed(load.producer, 0, healed_ms, ELECTED_SECONDS)
        load.other_sends += all_.sends
    late = [send for send in all_.acked if cut_ms + ON_THEIR_WAY_SECONDS * 1000 < send.ended_ms < healed_ms]
    assert late == [], f"{late[0].value!r} was acknowledged at {late[0].ended_ms:.0f} ms, after the cut"
    trial.brokers.assert_replicas_are_equal("t")
