"""Copying partitions from their leaders.

Owns the broker's settings for replication. Must not know how they are read.
"""

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import CLASS, INT, LONG, at_least, one_of
from lamina.settings.log_config import LONG_MAX, MEBIBYTE

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

NUM_REPLICA_FETCHERS = broker_setting(
    "num.replica.fetchers",
    INT,
    1,
    "Connections to each other broker that partitions are copied from, each with some of its partitions.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
)
REPLICA_FETCH_MIN_BYTES = broker_setting(
    "replica.fetch.min.bytes",
    INT,
    1,
    "A leader answers a follower when it has this much, or after `replica.fetch.wait.max.ms`.",
    rule=at_least(0),
)
REPLICA_FETCH_MAX_BYTES = broker_setting(
    "replica.fetch.max.bytes",
    INT,
    MEBIBYTE,
    "How much of one partition a follower asks for at a time, and a move to another log directory copies; a larger "
    "batch comes whole.",
    rule=at_least(0),
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = broker_setting(
    "replica.fetch.response.max.bytes",
    INT,
    10 * MEBIBYTE,
    "How much of all its partitions a follower asks for at a time.",
    rule=at_least(0),
)
REPLICA_FETCH_WAIT_MAX_MS = broker_setting(
    "replica.fetch.wait.max.ms",
    INT,
    500,
    "How long a leader may wait for `replica.fetch.min.bytes` before it answers a follower.",
)
REPLICA_FETCH_BACKOFF_MS = broker_setting(
    "replica.fetch.backoff.ms",
    INT,
    1000,
    "How long a follower waits at most after an error before it fetches a partition again: 20 ms after the first, "
    "twice as long after each further one.",
    rule=at_least(0),
    difference="Kafka waits this long after each error",
)
REPLICA_SOCKET_TIMEOUT_MS = broker_setting(
    "replica.socket.timeout.ms",
    INT,
    30_000,
    "How long a broker waits for the answer of another one, beside what it lets it wait on purpose.",
)
REPLICA_LAG_TIME_MAX_MS = broker_setting(
    "replica.lag.time.max.ms",
    LONG,
    30_000,
    "A follower that has not caught up for this long leaves the in-sync set.",
)
REPLICA_SELECTOR_CLASS = broker_setting(
    "replica.selector.class",
    CLASS,
    None,
    "Which replica a consumer is sent to: the leader, or by Kafka's `RackAwareReplicaSelector` the in-sync follower in "
    "the consumer's rack.",
    rule=one_of(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    difference="Lamina loads no classes: it knows these two by their names",
)
LEADER_REPLICATION_THROTTLED_RATE = broker_setting(
    "leader.replication.throttled.rate",
    LONG,
    LONG_MAX,
    "How many bytes per second leaders on this broker send at most to the followers of throttled replicas that are not "
    "in sync; `leader.replication.throttled.replicas` of a topic says which replicas are throttled.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    difference="Kafka takes it only while it runs, not from its file",
)
FOLLOWER_REPLICATION_THROTTLED_RATE = broker_setting(
    "follower.replication.throttled.rate",
    LONG,
    LONG_MAX,
    "How many bytes per second this broker fetches at most for throttled replicas that are behind; "
    "`follower.replication.throttled.replicas` of a topic says which replicas are throttled.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    difference="Kafka takes it only while it runs, not from its file",
)
REPLICATION_QUOTA_WINDOW_NUM = broker_setting(
    "replication.quota.window.num",
    INT,
    11,
    "Over how many windows of time the rate of throttled replicas is measured.",
    rule=at_least(1),
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = broker_setting(
    "replication.quota.window.size.seconds",
    INT,
    1,
    "How long each of these windows is.",
    rule=at_least(1),
)
NUM_REPLICA_ALTER_LOG_DIRS_THREADS = broker_setting(
    "num.replica.alter.log.dirs.threads",
    INT,
    None,
    "How many threads copy partitions that move to other log directories. When it is not given, as many as there are "
    "log directories.",
    rule=at_least(1),
)
REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND = broker_setting(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG,
    LONG_MAX,
    "How many bytes per second all partitions together that move to other log directories of this broker copy at most.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    difference="Kafka takes it only while it runs, not from its file",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM = broker_setting(
    "alter.log.dirs.replication.quota.window.num",
    INT,
    11,
    "Over how many windows of time that rate is measured.",
    rule=at_least(1),
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = broker_setting(
    "alter.log.dirs.replication.quota.window.size.seconds",
    INT,
    1,
    "How long each of these windows is.",
    rule=at_least(1),
)
