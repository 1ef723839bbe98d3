"""The controller's shell: what it stores, and what it counts of it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lamina.broker.counters import ReplicationCounters
from lamina.broker.metadata import controller as controller_shell
from lamina.broker.metadata.controller import Controller
from lamina.broker.metadata.follow_messages import NOTHING_YET, FollowRequest
from lamina.broker.metadata.report_changes import with_report
from lamina.broker.metadata.reports import Report
from lamina.broker.threads import Threads
from lamina.clocks import SYSTEM_CLOCKS
from lamina.controller.election import ElectionFacts, LogEnd
from lamina.errors import NotController, PolicyViolation
from lamina.image.changes import create_topic, set_configs, set_partitions
from lamina.image.features import SUPPORTED
from lamina.image.image import Broker, ConfigResource, Image, ResourceType
from lamina.store import znodes
from lamina.store.cluster_identity import cluster_id
from lamina.store.interface import LARGEST_BYTES
from lamina.store.znodes import ZnodeMetadata
from tests.image.steps import CLUSTER_ID, topic_id
from tests.store.memory_zookeeper import MemoryZooKeeper
from tests.store.test_membership import registered


async def never_refused(_: Broker) -> bool:
    return False


async def never_removed(brokers: Sequence[Broker]) -> None:
    raise AssertionError(f"brokers {[broker.id for broker in brokers]} are alive")


def run(
    scenario: Callable[[Controller, ReplicationCounters], Awaitable[None]],
    *,
    is_begun: bool = True,
    unclean_wait_ms: int = 0,
) -> None:
    async def main() -> None:
        store = MemoryZooKeeper().connect()
        tenure = registered(store, 1).elect()
        assert tenure is not None
        cluster_id(store, CLUSTER_ID)
        metadata, loop = ZnodeMetadata(store), asyncio.get_running_loop()
        threads, counters = Threads(loop, SYSTEM_CLOCKS), ReplicationCounters()
        image, facts = metadata.load(), ElectionFacts()
        controller = Controller(
            1,
            loop,
            tenure,
            image,
            metadata,
            threads,
            unclean_wait_ms,
            facts,
            counters,
            never_refused,
            never_removed,
            lambda: None,
        )
        try:
            if is_begun:
                await controller.begin({}, frozenset())
            await scenario(controller, counters)
        finally:
            threads.close()

    asyncio.run(main())


def elected(leader: int, isr: tuple[int, ...], *, is_unclean: bool = False) -> Callable[[Image], Image]:
    """The partition gets this leader in a new epoch."""

    def change(image: Image) -> Image:
        old = image.topics["t"].partitions[0]
        new = replace(old, leader=leader, isr=isr, leader_epoch=old.leader_epoch + 1, is_recovering=is_unclean)
        return set_partitions(image, {("t", 0): new})

    return change


def test_elections_are_counted_and_unclean_ones_apart_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(controller: Controller, counters: ReplicationCounters) -> None:
        await controller.change(lambda image: create_topic(image, "t", topic_id(1), [(1, 2, 3)]))
        assert counters.leader_elections == 0, "a topic's first leader is not elected over another"
        await controller.change(elected(2, (2, 3)))
        await controller.change(elected(-1, (2, 3)))
        assert (counters.leader_elections, counters.unclean_leader_elections) == (1, 0)
        await controller.change(elected(1, (1,), is_unclean=True))
        assert (counters.leader_elections, counters.unclean_leader_elections) == (2, 1)
        await controller.change(elected(3, (3,)))
        assert counters.unclean_leader_elections == 1, "it joined by the same change, which completed a reassignment"

    run(scenario)
    [told] = [message for message in caplog.messages if message.startswith("unclean election")]
    assert "t-0 is now led by broker 1" in told


def test_a_change_too_large_for_the_store_is_refused_and_the_controller_stays_in_office() -> None:
    async def scenario(controller: Controller, _: ReplicationCounters) -> None:
        await controller.change(lambda image: create_topic(image, "t", topic_id(1), [(1,)]))
        topic = ConfigResource(ResourceType.TOPIC, "t")
        with pytest.raises(PolicyViolation, match="too large"):
            await controller.change(lambda image: set_configs(image, topic, {"a": "1" * LARGEST_BYTES}))
        assert controller.is_active
        await controller.change(lambda image: set_configs(image, topic, {"a": "1"}))
        assert controller.stream.image.configs_of(topic) == {"a": "1"}

    run(scenario)


def test_a_controller_whose_take_over_is_too_large_for_the_store_resigns_and_nobody_waits_for_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(znodes, "LARGEST_BYTES", 10)

    async def scenario(controller: Controller, _: ReplicationCounters) -> None:
        waiting = asyncio.ensure_future(controller.change(lambda image: image))
        with pytest.raises(NotController, match="this change is too large"):
            await controller.begin({1: Broker(1, {}, None, 5, features=SUPPORTED)}, frozenset([1]))
        assert not controller.is_active
        with pytest.raises(NotController):
            await asyncio.wait_for(waiting, 5)

    run(scenario, is_begun=False)
    [told] = caplog.messages
    assert told.startswith("no longer the controller of epoch 1: it cannot take over from the one before: this change")


def test_what_a_report_means_for_many_partitions_is_found_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_on = []

    def spied(*given: Any) -> Image:
        looked_on.append(threading.current_thread())
        return with_report(*given)

    monkeypatch.setattr(controller_shell, "with_report", spied)

    async def scenario(controller: Controller, _: ReplicationCounters) -> None:
        await controller.brokers_registered({1: Broker(1, {}, None, 5)})
        for count in (1, controller_shell._AT_ONCE):
            topic = f"of-{count}"
            await controller.change(partial(with_topic, topic, count))
            made = Report(is_ready=True, made=frozenset([(topic, 0)]))
            for report in (made, made, Report(is_ready=True)):
                await controller.follow(1, 5, FollowRequest(NOTHING_YET, NOTHING_YET, 0, report))

    run(scenario)
    main = threading.current_thread()
    assert [thread is main for thread in looked_on] == [True, True, False, False]


def with_topic(name: str, count: int, image: Image) -> Image:
    return create_topic(image, name, topic_id(count), [(1,)] * count)


def test_what_a_broker_tells_again_of_an_unclean_stop_that_was_answered_counts_no_more() -> None:
    """It tells it until it has seen the election; by then it leads, and what it appends is as good as anybody's."""

    async def scenario(controller: Controller, _: ReplicationCounters) -> None:
        await controller.brokers_registered({1: Broker(1, {}, None, 5)})
        await controller.change(lambda image: create_topic(image, "t", topic_id(1), [(1,)]))
        await controller.change(elected(-1, (1,)))
        report = Report(is_ready=True, made=frozenset([("t", 0)]), ends={("t", 0): LogEnd(0, 7)})
        for _again in range(2):
            await controller.follow(1, 5, FollowRequest(NOTHING_YET, NOTHING_YET, 0, report))
            assert controller.stream.image.partition("t", 0).leader == 1
            assert not controller.facts.ends

    run(scenario)


def test_what_elections_must_know_of_many_partitions_is_kept_up_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_on: dict[str, list[bool]] = {}
    main = threading.current_thread()

    def spy(owner: Any, name: str) -> None:
        work = getattr(owner, name)

        def spied(*given: Any) -> Any:
            looked_on.setdefault(name, []).append(threading.current_thread() is main)
            return work(*given)

        monkeypatch.setattr(owner, name, spied)

    for name in ("with_ends", "unresolved_in"):
        spy(ElectionFacts, name)
    spy(controller_shell, "elect_waiting")

    async def scenario(controller: Controller, _: ReplicationCounters) -> None:
        count = controller_shell._AT_ONCE + 1
        await controller.brokers_registered({1: Broker(1, {}, None, 5)})
        await controller.change(lambda image: create_topic(image, "t", topic_id(1), [(1, 2)] * count))
        await controller.change(partial(without_leaders, count))
        looked_on.clear()
        ends = {("t", index): LogEnd(0, 7) for index in range(count)}
        report = Report(is_ready=True, made=frozenset(ends), ends=ends)
        await controller.follow(1, 5, FollowRequest(NOTHING_YET, NOTHING_YET, 0, report))
        assert controller.facts.ends.keys() == ends.keys(), "broker 2, which is in sync too, is waited for"
        topic = ConfigResource(ResourceType.TOPIC, "t")
        await controller.change(lambda image: set_configs(image, topic, {"a": "1"}))
        controller.resign("the test is over")

    run(scenario, unclean_wait_ms=60_000)
    assert {name: set(threads) for name, threads in looked_on.items()} == {
        "with_ends": {False},
        "unresolved_in": {False},
        "elect_waiting": {False},
    }


def without_leaders(count: int, image: Image) -> Image:
    led = {("t", index): image.partition("t", index) for index in range(count)}
    return set_partitions(image, {key: replace(one, leader=-1, isr=(1, 2)) for key, one in led.items()})
