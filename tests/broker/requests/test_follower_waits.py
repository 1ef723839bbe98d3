"""How long a follower's fetch may wait while its broker has partitions more to fetch."""

import gc
import weakref
from dataclasses import dataclass
from typing import cast

import pytest

from lamina.broker.partitions.leader import Leader
from lamina.broker.partitions.partition import Partition
from lamina.broker.requests.follower_waits import AWAITED_MS, BRIEF_MS, FollowerWaits
from lamina.image.topic import Partition as PartitionState
from tests.driven_clock import DrivenClock

WANTED_MS = 500
OTHER = 2
EPOCHS = {1: 10, OTHER: 20}


@dataclass(eq=False)
class Led:
    """A partition that this broker leads."""

    leader: Leader | None

    def require_leader(self) -> Leader:
        assert self.leader is not None
        return self.leader

    def fetched(self) -> None:
        self.require_leader().fetched(OTHER, EPOCHS[OTHER], 0, 0, 0, 0)


@pytest.fixture
def clock() -> DrivenClock:
    clock = DrivenClock()
    clock.monotonic_ms = 0
    return clock


@pytest.fixture
def waits(clock: DrivenClock) -> FollowerWaits:
    return FollowerWaits(clock.clocks)


def lead(waits: FollowerWaits, previous: Leader | None = None) -> Led:
    led = Led(Leader(1, PartitionState((1, OTHER), 1, 0, (1, OTHER)), 0, 1000, EPOCHS.get, 0, previous))
    waits.partition_led(cast(Partition, led))
    return led


def test_a_follower_waits_briefly_until_it_fetches_all_that_this_broker_came_to_lead(waits: FollowerWaits) -> None:
    first, second = lead(waits), lead(waits)
    assert waits.longest_ms(OTHER, WANTED_MS) == BRIEF_MS
    second.fetched()
    assert waits.longest_ms(OTHER, WANTED_MS) == BRIEF_MS
    first.fetched()
    assert waits.longest_ms(OTHER, WANTED_MS) == WANTED_MS


def test_a_follower_that_does_not_come_is_not_awaited_for_ever(waits: FollowerWaits, clock: DrivenClock) -> None:
    lead(waits)
    clock.monotonic_ms = AWAITED_MS
    assert waits.longest_ms(OTHER, WANTED_MS) == WANTED_MS


def test_a_partition_that_another_broker_leads_is_not_waited_for(waits: FollowerWaits) -> None:
    lead(waits).leader = None
    assert waits.longest_ms(OTHER, WANTED_MS) == WANTED_MS


def test_what_was_led_for_a_follower_that_is_away_is_not_kept(waits: FollowerWaits, clock: DrivenClock) -> None:
    """Its broker may be away for months, in which there is one election after the other."""
    led = [weakref.ref(lead(waits)) for _ in range(10)]
    assert all(one() is not None for one in led)
    clock.monotonic_ms = AWAITED_MS
    lead(waits)
    gc.collect()
    assert [one() for one in led] == [None] * 10


def test_a_follower_is_awaited_again_in_the_next_epoch(waits: FollowerWaits) -> None:
    led = lead(waits)
    led.fetched()
    lead(waits, previous=led.leader)
    assert waits.longest_ms(OTHER, WANTED_MS) == BRIEF_MS
