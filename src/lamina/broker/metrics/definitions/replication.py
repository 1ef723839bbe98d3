"""The cluster and the copies of partitions, with Kafka's meanings; a broker by itself has them too."""

from lamina.broker.metrics.metric import counter, gauge

_REPLICAS = "kafka.server:type=ReplicaManager,name={}"
_CONTROLLER = "kafka.controller:type=KafkaController,name={}"
_TRAFFIC = "kafka.server:type=BrokerTopicMetrics,name={}"
_ELECTIONS = "kafka.controller:type=ControllerStats,name={}"

ACTIVE_CONTROLLER = gauge(
    "lamina_active_controller",
    "1 on the broker that is the controller. The sum over a cluster is 1, and 0 or 2 only while it changes.",
    kafka=_CONTROLLER.format("ActiveControllerCount"),
)
CONTROLLER_OFFLINE_PARTITIONS = gauge(
    "lamina_controller_offline_partitions",
    "Partitions of the cluster that nobody leads, as the controller sees it; 0 on all other brokers.",
    kafka=_CONTROLLER.format("OfflinePartitionsCount"),
)
PREFERRED_REPLICA_IMBALANCE = gauge(
    "lamina_controller_preferred_replica_imbalance",
    "Partitions of the cluster that are not led by their first replica, as the controller sees it; 0 on all other "
    "brokers.",
    kafka=_CONTROLLER.format("PreferredReplicaImbalanceCount"),
)
LEADER_PARTITIONS = gauge(
    "lamina_leader_partitions", "Partitions that this broker leads.", kafka=_REPLICAS.format("LeaderCount")
)
UNDER_REPLICATED_PARTITIONS = gauge(
    "lamina_under_replicated_partitions",
    "Partitions led here with fewer replicas in sync than they have; those that are being added do not count.",
    kafka=_REPLICAS.format("UnderReplicatedPartitions"),
)
UNDER_MIN_ISR_PARTITIONS = gauge(
    "lamina_under_min_isr_partitions",
    "Partitions led here with fewer replicas in sync than `min.insync.replicas`: writes with `acks=all` are refused.",
    kafka=_REPLICAS.format("UnderMinIsrPartitionCount"),
)
AT_MIN_ISR_PARTITIONS = gauge(
    "lamina_at_min_isr_partitions",
    "Partitions led here with exactly as many: one replica less, and such writes are refused.",
    kafka=_REPLICAS.format("AtMinIsrPartitionCount"),
)
REASSIGNING_PARTITIONS = gauge(
    "lamina_reassigning_partitions",
    "Partitions led here that are being reassigned to other replicas.",
    kafka=_REPLICAS.format("ReassigningPartitions"),
)
REASSIGNMENT_IN_BYTES = counter(
    "lamina_reassignment_in_bytes_total",
    "Bytes of batches that this broker has copied for replicas that were being added to it.",
    kafka=_TRAFFIC.format("ReassignmentBytesInPerSec"),
)
REASSIGNMENT_OUT_BYTES = counter(
    "lamina_reassignment_out_bytes_total",
    "Bytes of batches that leaders here have sent to replicas that were being added.",
    kafka=_TRAFFIC.format("ReassignmentBytesOutPerSec"),
)
THROTTLED_OUT_BYTES = counter(
    "lamina_replication_throttled_out_bytes_total",
    "Bytes of batches that leaders here have sent to followers of throttled replicas.",
    kafka="kafka.server:type=LeaderReplication,name=byte-rate",
)
THROTTLED_IN_BYTES = counter(
    "lamina_replication_throttled_in_bytes_total",
    "Bytes of batches that this broker has copied for its throttled replicas.",
    kafka="kafka.server:type=FollowerReplication,name=byte-rate",
)
THROTTLED_READS = counter(
    "lamina_replication_throttled_reads_total",
    "How often a leader here left a partition out of a follower's response, because "
    "`leader.replication.throttled.rate` was exceeded.",
)
THROTTLED_FETCHES = counter(
    "lamina_replication_throttled_fetches_total",
    "How often a follower here left a partition out of its requests for a while, because "
    "`follower.replication.throttled.rate` was exceeded.",
)
ISR_SHRINKS = counter(
    "lamina_isr_shrinks_total",
    "How often a leader here took replicas out of an in-sync set.",
    kafka=_REPLICAS.format("IsrShrinksPerSec"),
)
ISR_EXPANDS = counter(
    "lamina_isr_expands_total",
    "How often a leader here took one in again.",
    kafka=_REPLICAS.format("IsrExpandsPerSec"),
)
LEADER_ELECTIONS = counter(
    "lamina_leader_elections_total",
    "Leaders that were elected while this broker was the controller.",
    kafka=_ELECTIONS.format("LeaderElectionRateAndTimeMs"),
)
UNCLEAN_LEADER_ELECTIONS = counter(
    "lamina_unclean_leader_elections_total",
    "Those of them that were not in sync: committed records may be lost.",
    kafka=_ELECTIONS.format("UncleanLeaderElectionsPerSec"),
)
REPLICA_MAX_LAG = gauge(
    "lamina_replica_max_lag",
    "Offsets that this broker is behind its leaders, the most of all partitions that it follows.",
    kafka="kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica",
)
ZOOKEEPER_SESSION_PROVEN = gauge(
    "lamina_zookeeper_session_proven",
    "0 while this broker cannot prove its session: writes with `acks` 0 and 1 are refused. 1 without ZooKeeper.",
    kafka="kafka.server:type=SessionExpireListener,name=SessionState",
)
