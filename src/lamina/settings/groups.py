"""Consumer groups and their offsets.

Owns the broker's settings for the group coordinator, and what can be set on one group. Must not know how they are read.
"""

from lamina.settings.definition import broker_setting, group_setting
from lamina.settings.kinds import INT, LIST, LONG, SHORT, STRING, Rule, at_least, one_of

GROUP_MIN_SESSION_TIMEOUT_MS = broker_setting(
    "group.min.session.timeout.ms", INT, 6_000, "The shortest session that a classic member may ask for."
)
GROUP_MAX_SESSION_TIMEOUT_MS = broker_setting(
    "group.max.session.timeout.ms", INT, 1_800_000, "The longest session that a classic member may ask for."
)
GROUP_INITIAL_REBALANCE_DELAY_MS = broker_setting(
    "group.initial.rebalance.delay.ms",
    INT,
    3_000,
    "How long an empty classic group waits for more members after the first.",
    rule=at_least(0),
)
GROUP_MAX_SIZE = broker_setting(
    "group.max.size", INT, 2**31 - 1, "The most members that a classic group may have.", rule=at_least(1)
)
GROUP_CONSUMER_SESSION_TIMEOUT_MS = broker_setting(
    "group.consumer.session.timeout.ms",
    INT,
    45_000,
    "How long a member of a consumer group may be silent.",
    rule=at_least(1),
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS = broker_setting(
    "group.consumer.min.session.timeout.ms",
    INT,
    45_000,
    "The least that a group may set it to.",
    rule=at_least(1),
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS = broker_setting(
    "group.consumer.max.session.timeout.ms",
    INT,
    60_000,
    "The most that a group may set it to.",
    rule=at_least(1),
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS = broker_setting(
    "group.consumer.heartbeat.interval.ms",
    INT,
    5_000,
    "How often members of a consumer group are told to send a heartbeat.",
    rule=at_least(1),
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = broker_setting(
    "group.consumer.min.heartbeat.interval.ms",
    INT,
    5_000,
    "The least that a group may set it to.",
    rule=at_least(1),
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = broker_setting(
    "group.consumer.max.heartbeat.interval.ms",
    INT,
    15_000,
    "The most that a group may set it to.",
    rule=at_least(1),
)
GROUP_CONSUMER_MAX_SIZE = broker_setting(
    "group.consumer.max.size", INT, 2**31 - 1, "The most members that a consumer group may have.", rule=at_least(1)
)
GROUP_CONSUMER_ASSIGNORS = broker_setting(
    "group.consumer.assignors",
    LIST,
    ("uniform", "range"),
    "The assignors that members may ask for; the first is the default.",
    rule=Rule("a list of uniform or range", lambda names: bool(names) and set(names) <= {"uniform", "range"}),
)
GROUP_CONSUMER_MIGRATION_POLICY = broker_setting(
    "group.consumer.migration.policy",
    STRING,
    "bidirectional",
    "Which groups are converted while members live: to the consumer protocol (upgrade), back (downgrade), "
    "both or none.",
    rule=one_of("disabled", "upgrade", "downgrade", "bidirectional"),
)
GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS = broker_setting(
    "group.consumer.regex.refresh.interval.ms",
    INT,
    600_000,
    "How often the topics that a regular expression stands for are looked up again when none was made or deleted.",
    rule=at_least(10_000),
)
OFFSET_METADATA_MAX_BYTES = broker_setting(
    "offset.metadata.max.bytes", INT, 4096, "The longest note that may be committed with an offset."
)
OFFSETS_COMMIT_TIMEOUT_MS = broker_setting(
    "offsets.commit.timeout.ms",
    INT,
    5_000,
    "How long a group's change, or an answer about a group, waits until every in-sync replica has it. Then the client "
    "is told COORDINATOR_NOT_AVAILABLE and asks again.",
    rule=at_least(1),
)
OFFSETS_RETENTION_MINUTES = broker_setting(
    "offsets.retention.minutes",
    INT,
    7 * 24 * 60,
    "How long offsets are kept after the last member has left, or after the commit where there never was one.",
    rule=at_least(1),
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = broker_setting(
    "offsets.retention.check.interval.ms", LONG, 600_000, "How often offsets are looked at for it.", rule=at_least(1)
)
OFFSETS_TOPIC_NUM_PARTITIONS = broker_setting(
    "offsets.topic.num.partitions",
    INT,
    50,
    "Partitions of `__consumer_offsets` when it is made; must not be changed later.",
    rule=at_least(1),
)
OFFSETS_TOPIC_REPLICATION_FACTOR = broker_setting(
    "offsets.topic.replication.factor",
    SHORT,
    3,
    "Replicas of `__consumer_offsets` when it is made. A broker without a cluster makes one unless this is set.",
    rule=at_least(1),
)
OFFSETS_TOPIC_SEGMENT_BYTES = broker_setting(
    "offsets.topic.segment.bytes", INT, 104_857_600, "`segment.bytes` of `__consumer_offsets`.", rule=at_least(1)
)
OFFSETS_TOPIC_COMPRESSION_CODEC = broker_setting(
    "offsets.topic.compression.codec",
    INT,
    0,
    "How batches of `__consumer_offsets` are compressed: 0 not, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    rule=Rule("between 0 and 4", lambda codec: 0 <= codec <= 4),
)

# On one group, with the broker's as defaults

CONSUMER_SESSION_TIMEOUT_MS = group_setting(
    "consumer.session.timeout.ms",
    INT,
    GROUP_CONSUMER_SESSION_TIMEOUT_MS,
    "How long a member may be silent, between `group.consumer.min.session.timeout.ms` and its max.",
)
CONSUMER_HEARTBEAT_INTERVAL_MS = group_setting(
    "consumer.heartbeat.interval.ms",
    INT,
    GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    "How often members are told to send a heartbeat, between `group.consumer.min.heartbeat.interval.ms` and its max.",
)
