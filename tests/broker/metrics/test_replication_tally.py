"""Which partitions count as led, under-replicated, under and at min ISR, and without a leader."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metrics.replication_tally import ReplicationTally, tally_replication
from lamina.broker.partitions.partition_set import Partitions
from lamina.clocks import SYSTEM_CLOCKS
from lamina.image.image import Broker, Image
from lamina.image.topic import NO_LEADER, Partition, Topic
from lamina.settings.log_config import LogConfig

ME = 1


@dataclass(frozen=True)
class Log:
    config: LogConfig


@dataclass(frozen=True)
class Served:
    log: Log


class AllServed:
    """Every partition is here, with one configuration."""

    def find(self, _topic: str, _index: int) -> Served:
        return Served(Log(LogConfig(min_insync_replicas=2)))


@dataclass(frozen=True)
class Known:
    image: Image
    node_id: int = ME


def tally(
    *partitions: Partition, controller: int = ME, brokers: Mapping[int, Broker] | None = None
) -> ReplicationTally:
    alive = {number: Broker(number, {}) for number in (1, 2, 3)} if brokers is None else brokers
    image = Image("c", alive, controller, topics={"t": Topic("t", b"t" * 16, partitions)})
    counting = tally_replication(cast(Metadata, Known(image)), cast(Partitions, AllServed()), SYSTEM_CLOCKS)
    return asyncio.run(counting)


def partition(*isr: int, leader: int = ME, replicas: tuple[int, ...] = (1, 2, 3), epoch: int = 0) -> Partition:
    return Partition(replicas, leader, epoch, isr)


def test_all_in_sync() -> None:
    assert tally(partition(1, 2, 3)) == ReplicationTally(is_controller=True, led=1)


def test_one_replica_less_is_at_min_isr_and_two_less_are_under_it() -> None:
    found = tally(partition(1, 2), partition(1))
    assert (found.led, found.under_replicated, found.at_min_isr, found.under_min_isr) == (2, 2, 1, 1)


def test_fewer_replicas_than_min_isr_need_all_of_them() -> None:
    """R12."""
    found = tally(partition(1, replicas=(1,)))
    assert (found.at_min_isr, found.under_min_isr, found.under_replicated) == (1, 0, 0)


def test_who_is_being_added_is_missed_by_min_isr_alone_r52() -> None:
    """As in Kafka: a partition that grows is not under-replicated, and needs all that acks=all would."""
    growing = replace(partition(1, replicas=(1, 2)), adding=(2,))
    found = tally(growing)
    assert (found.reassigning, found.under_replicated, found.under_min_isr) == (1, 0, 1)
    moving = replace(partition(1, 2, replicas=(4, 1, 2, 3)), adding=(4,), removing=(3,))
    assert (tally(moving).under_replicated, tally(replace(moving, isr=(1, 2, 3))).under_replicated) == (1, 0)


def test_what_others_lead_is_their_affair() -> None:
    assert tally(partition(2, leader=2), controller=2) == ReplicationTally(led_by_others=1)


def test_a_partition_is_without_leader_when_nobody_is_elected_or_the_leader_is_gone_or_lost_the_disk() -> None:
    """R44; a new one, which never had a leader, is not counted."""
    assert tally(partition(2, leader=NO_LEADER)).without_leader == 1
    assert tally(partition(2, leader=4)).without_leader == 1
    lost = {2: Broker(2, {}, offline=frozenset({("t", 0)}))}
    assert tally(partition(2, leader=2), brokers=lost).without_leader == 1
    assert tally(partition(leader=NO_LEADER, epoch=-1)).without_leader == 0


def test_a_partition_is_led_by_another_than_its_preferred_replica() -> None:
    found = tally(partition(1, 2), partition(1, 2, leader=2), partition(2, leader=NO_LEADER))
    assert found.led_by_others == 2


def test_topics_that_are_being_deleted_are_not_counted() -> None:
    image = Image("c", topics={"t": Topic("t", b"t" * 16, (partition(1),), is_being_deleted=True)})
    counting = tally_replication(cast(Metadata, Known(image)), cast(Partitions, AllServed()), SYSTEM_CLOCKS)
    assert asyncio.run(counting) == ReplicationTally()
