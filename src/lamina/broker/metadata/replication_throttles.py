"""Which replicas have to wait because a replication throttle is exceeded (R77, R78).

Owns the two quotas of this broker: of what its leaders send, and of what its followers fetch. The settings of a topic
say which replicas are throttled. All bytes of these count; only those that are behind wait, so that a replica which is
in sync stays so. Must not know requests or fetchers.
"""

from lamina.broker.counters import ReplicationCounters
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.quota import Quota
from lamina.clocks import Clocks
from lamina.settings.replication import (
    FOLLOWER_REPLICATION_THROTTLED_RATE,
    LEADER_REPLICATION_THROTTLED_RATE,
    REPLICATION_QUOTA_WINDOW_NUM,
    REPLICATION_QUOTA_WINDOW_SIZE_SECONDS,
)
from lamina.settings.values import BrokerSettings


class ReplicationThrottles(MetadataListener):
    def __init__(self, settings: BrokerSettings, counters: ReplicationCounters, clocks: Clocks) -> None:
        windows = (settings[REPLICATION_QUOTA_WINDOW_NUM], settings[REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1000)
        self._sending = Quota(*windows, clocks, settings[LEADER_REPLICATION_THROTTLED_RATE])
        self._fetching = Quota(*windows, clocks, settings[FOLLOWER_REPLICATION_THROTTLED_RATE])
        self._counters = counters

    def settings_changed(self, settings: BrokerSettings) -> None:
        self._sending.bytes_per_second = settings[LEADER_REPLICATION_THROTTLED_RATE]
        self._fetching.bytes_per_second = settings[FOLLOWER_REPLICATION_THROTTLED_RATE]

    # Leading

    def holds_back(self, partition: Partition, replica_id: int) -> bool:
        """Whether the leader sends a follower nothing of a partition now."""
        if not partition.is_throttled_as_leader or partition.leader is None:
            return False
        return replica_id not in partition.leader.in_sync and self._sending.is_exceeded()

    def sent(self, size_bytes: int) -> None:
        """To followers of throttled partitions."""
        self._sending.record(size_bytes)
        self._counters.throttled_out_bytes += size_bytes

    # Following

    def wait_ms(self, partition: Partition) -> int:
        """How long a follower leaves a partition out of its requests, after which it asks here again; 0 to fetch."""
        follower = partition.follower
        if not partition.is_throttled_as_follower or follower is None:
            return 0
        if follower.lag(partition.log.log_end_offset) == 0:
            return 0
        wait_ms = self._fetching.over_ms()
        self._counters.throttled_fetches += wait_ms > 0
        return wait_ms

    def fetched(self, partition: Partition, size_bytes: int) -> None:
        if partition.is_throttled_as_follower:
            self._fetching.record(size_bytes)
            self._counters.throttled_in_bytes += size_bytes
