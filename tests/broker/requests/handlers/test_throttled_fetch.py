"""A leader leaves throttled partitions out of followers' responses while it is above its quota (R78)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from lamina.image.changes import set_configs
from lamina.image.image import ConfigResource, ResourceType
from tests.broker.requests.handlers.replicated import ME, OTHER, THIRD, ReplicatedBroker
from tests.broker.requests.handlers.test_replica_sessions import FollowerSession

RATE = 100
WAIT_MS = 60_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    """Broker 2 is in sync and broker 3 is not; this broker is throttled as leader of partitions 0 and 1."""
    opened = ReplicatedBroker(
        tmp_path,
        {"leader.replication.throttled.rate": str(RATE)},
        leader_replication_throttled_replicas=f"0:{ME},1:{ME}",
    )
    opened.place(isr=(ME, OTHER))
    opened.begin_produce(30, acks=1)
    opened.turn()
    assert opened.partition.log.log_end_offset == 30
    assert opened.partition.log.size_bytes() > RATE
    yield opened
    opened.close()


def throttle(broker: ReplicatedBroker, replicas: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, "t")
    broker.change(lambda image: set_configs(image, resource, {"leader.replication.throttled.replicas": replicas}))


def exceed(broker: ReplicatedBroker) -> None:
    assert broker.fetch(0, replica_id=THIRD).records
    sent = broker.parts.counters.replication.throttled_out_bytes
    assert sent == broker.partition.log.size_bytes()


def test_who_is_not_in_sync_gets_nothing_more(broker: ReplicatedBroker) -> None:
    exceed(broker)
    held = broker.fetch(0, replica_id=THIRD)
    assert (held.error_code, held.records) == (ErrorCode.NONE, b"")
    assert held.high_watermark == broker.partition.high_watermark
    assert broker.parts.counters.replication.throttled_reads == 1
    assert broker.partition.require_leader().followers[THIRD].log_end_offset == 0, "its fetch counts"


def test_who_is_in_sync_gets_all_the_same(broker: ReplicatedBroker) -> None:
    exceed(broker)
    assert broker.fetch(0, replica_id=OTHER).records
    assert broker.parts.counters.replication.throttled_reads == 0
    assert broker.parts.counters.replication.throttled_out_bytes == 2 * broker.partition.log.size_bytes()


def test_it_goes_on_when_the_rate_is_within_the_quota_again(broker: ReplicatedBroker) -> None:
    exceed(broker)
    assert isinstance(broker.clock.monotonic_ms, int)
    broker.clock.monotonic_ms += 1000 * broker.partition.log.size_bytes() // RATE + 1
    assert broker.fetch(0, replica_id=THIRD).records


def test_an_offset_that_is_not_there_is_told_under_a_throttle_too(broker: ReplicatedBroker) -> None:
    exceed(broker)
    assert broker.fetch(31, replica_id=THIRD).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_partition_that_is_not_listed_is_not_throttled(broker: ReplicatedBroker) -> None:
    exceed(broker)
    throttle(broker, f"0:{OTHER},1:{ME}")
    assert broker.fetch(0, replica_id=THIRD).records
    throttle(broker, "*")
    assert not broker.fetch(0, replica_id=THIRD).records


def test_what_is_written_meanwhile_ends_no_wait_of_a_throttled_follower(broker: ReplicatedBroker) -> None:
    third, second = FollowerSession(broker, THIRD), FollowerSession(broker, OTHER)
    assert third.fetch(0, max_wait=WAIT_MS).records
    waiting = third.begin(0, max_wait=WAIT_MS)
    assert not broker.settled(waiting)
    in_sync = second.begin(30, max_wait=WAIT_MS)
    broker.begin_produce(1, acks=1)
    assert broker.settled(in_sync)
    assert not broker.settled(waiting)
    reads = broker.parts.counters.replication.throttled_reads
    broker.begin_produce(1, acks=1)
    assert not broker.settled(waiting)
    assert broker.parts.counters.replication.throttled_reads == reads, "nobody looked"
    broker.place(isr=(ME, OTHER, THIRD), new_epoch=True)
    assert broker.settled(waiting), "who leads has changed"
