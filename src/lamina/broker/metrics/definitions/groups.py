"""Groups, their offsets, and the partitions that hold them."""

from lamina.broker.metrics.metric import counter, gauge, histogram

_GROUPS = "kafka.server:type=group-coordinator-metrics, {}"

GROUPS = gauge(
    "lamina_groups",
    "Groups that are coordinated here, those that only have offsets included.",
    "type",
    "state",
    kafka=_GROUPS.format("group-count (protocol), consumer-group-count (state)"),
)
GROUP_MEMBERS = gauge("lamina_group_members", "Their members.", "type")
GROUP_OFFSETS = gauge(
    "lamina_group_offsets",
    "Committed offsets that are kept.",
    kafka="kafka.coordinator.group:type=GroupMetadataManager,name=NumOffsets",
)
GROUP_REBALANCES = counter(
    "lamina_group_rebalances_total",
    "Generations of classic groups that were assigned, epochs of consumer groups that began.",
    "type",
    kafka=_GROUPS.format("group-completed-rebalance-count, consumer-group-rebalance-count"),
)
GROUP_COMMITTED_OFFSETS = counter(
    "lamina_group_committed_offsets_total",
    "Offsets that were committed, each partition of a request counted.",
    kafka=_GROUPS.format("offset-commit-count"),
)
GROUP_LAG = gauge(
    "lamina_group_lag",
    "Records between a committed offset and the high watermark, of groups that are coordinated here and partitions "
    "that are on this broker. At most 1000 series: those with the most lag.",
    "group",
    "topic",
    "partition",
)
GROUP_LAG_OMITTED = gauge("lamina_group_lag_omitted", "Series that `lamina_group_lag` would have besides.")
COORDINATOR_PARTITIONS = gauge(
    "lamina_coordinator_partitions",
    "Partitions of `__consumer_offsets` that are led here. `active`: their groups are served; `loading`: they are "
    "being read; `failed`: they cannot be.",
    "state",
    kafka=_GROUPS.format("num-partitions (state)"),
)
COORDINATOR_LOAD = histogram(
    "lamina_coordinator_load_seconds",
    "How long it took to load such a partition; its count is the number of those that were loaded.",
    kafka=_GROUPS.format("partition-load-time-max, partition-load-time-avg"),
)
