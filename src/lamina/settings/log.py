"""The broker's defaults for every topic's logs.

Owns the broker's halves of the broker/topic pairs, with Kafka 4.1's defaults and ranges and the order in
which they stand in for one another. Must not know the topics' halves.
"""

from lamina.settings.definition import Fallback, Update, broker_setting
from lamina.settings.kinds import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Rule, at_least, between, each_of, one_of
from lamina.settings.log_config import DAY_MS, HOUR_MS, LONG_MAX, MEBIBYTE

MINUTE_MS = 60_000
TIMESTAMP_TYPES = one_of("CreateTime", "LogAppendTime")
CLEANUP_POLICIES = each_of("compact", "delete")
COMPRESSION_TYPES = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS: Rule[int] = Rule(
    "between 1 and 9, or -1 for zlib's own choice", lambda value: value in {-1, *range(1, 10)}
)
LZ4_LEVELS = between(1, 17)
ZSTD_LEVELS = between(-131_072, 22)

NO_TIERED_STORAGE = "Lamina has no tiered storage"

LOG_SEGMENT_BYTES = broker_setting(
    "log.segment.bytes",
    INT,
    1024 * MEBIBYTE,
    "Largest size of one segment file.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(MEBIBYTE),
)
LOG_ROLL_HOURS = broker_setting(
    "log.roll.hours", INT, 168, "`log.roll.ms` in hours, when that is not given.", rule=at_least(1)
)
LOG_ROLL_MS = broker_setting(
    "log.roll.ms",
    LONG,
    None,
    "A segment is closed when its records span this long, even if it is not full.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
    fallbacks=(Fallback(LOG_ROLL_HOURS, HOUR_MS),),
)
LOG_ROLL_JITTER_HOURS = broker_setting(
    "log.roll.jitter.hours",
    INT,
    0,
    "`log.roll.jitter.ms` in hours, when that is not given.",
    rule=at_least(0),
)
LOG_ROLL_JITTER_MS = broker_setting(
    "log.roll.jitter.ms",
    LONG,
    None,
    "Up to this much is taken off `log.roll.ms` at random, so that logs do not all roll together.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    fallbacks=(Fallback(LOG_ROLL_JITTER_HOURS, HOUR_MS),),
)
LOG_INDEX_SIZE_MAX_BYTES = broker_setting(
    "log.index.size.max.bytes",
    INT,
    10 * MEBIBYTE,
    "Space kept for each index of the active segment; a full index closes the segment.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(4),
)
LOG_INDEX_INTERVAL_BYTES = broker_setting(
    "log.index.interval.bytes",
    INT,
    4096,
    "An index entry is added after about this many bytes.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_RETENTION_HOURS = broker_setting(
    "log.retention.hours", INT, 168, "`log.retention.ms` in hours, when neither that nor minutes are given."
)
LOG_RETENTION_MINUTES = broker_setting(
    "log.retention.minutes", INT, None, "`log.retention.ms` in minutes, when that is not given."
)
LOG_RETENTION_MS = broker_setting(
    "log.retention.ms",
    LONG,
    None,
    "A closed segment older than this is deleted; negative means no limit.",
    update=Update.CLUSTER_WIDE,
    rule=Rule("at least 1, or -1 for no limit", lambda value: value != 0),
    fallbacks=(Fallback(LOG_RETENTION_MINUTES, MINUTE_MS), Fallback(LOG_RETENTION_HOURS, HOUR_MS)),
)
LOG_RETENTION_BYTES = broker_setting(
    "log.retention.bytes",
    LONG,
    -1,
    "The oldest segments go while a partition is larger than this; negative means no limit.",
    update=Update.CLUSTER_WIDE,
)
LOG_SEGMENT_DELETE_DELAY_MS = broker_setting(
    "log.segment.delete.delay.ms",
    LONG,
    60_000,
    "How long a deleted file stays on the disk for readers that still hold it.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_FLUSH_INTERVAL_MESSAGES = broker_setting(
    "log.flush.interval.messages",
    LONG,
    LONG_MAX,
    "fsync after this many records.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = broker_setting(
    "log.flush.scheduler.interval.ms", LONG, LONG_MAX, "`log.flush.interval.ms`, when that is not given."
)
LOG_FLUSH_INTERVAL_MS = broker_setting(
    "log.flush.interval.ms",
    LONG,
    None,
    "fsync what has waited this long.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    fallbacks=(Fallback(LOG_FLUSH_SCHEDULER_INTERVAL_MS),),
)
LOG_CLEANUP_POLICY = broker_setting(
    "log.cleanup.policy",
    LIST,
    ("delete",),
    "What happens to old records: `delete` them by age and size, `compact` them by key, or both.",
    update=Update.CLUSTER_WIDE,
    rule=CLEANUP_POLICIES,
)
MESSAGE_MAX_BYTES = broker_setting(
    "message.max.bytes",
    INT,
    MEBIBYTE + 12,
    "Largest record batch that is accepted, counted as it is sent.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_MESSAGE_TIMESTAMP_TYPE = broker_setting(
    "log.message.timestamp.type",
    STRING,
    "CreateTime",
    "Whose clock dates a record: the producer's, or the broker's at the append.",
    update=Update.CLUSTER_WIDE,
    rule=TIMESTAMP_TYPES,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = broker_setting(
    "log.message.timestamp.before.max.ms",
    LONG,
    LONG_MAX,
    "A record dated further than this into the past is refused (`CreateTime` only).",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = broker_setting(
    "log.message.timestamp.after.max.ms",
    LONG,
    HOUR_MS,
    "A record dated further than this into the future is refused (`CreateTime` only).",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = broker_setting(
    "log.cleaner.min.cleanable.ratio",
    DOUBLE,
    0.5,
    "A log is compacted when more than this share of its closed segments is dirty.",
    update=Update.CLUSTER_WIDE,
    rule=between(0, 1),
)
LOG_CLEANER_DELETE_RETENTION_MS = broker_setting(
    "log.cleaner.delete.retention.ms",
    LONG,
    DAY_MS,
    "How long a tombstone or a transaction's marker stays after the first pass that met it.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = broker_setting(
    "log.cleaner.min.compaction.lag.ms",
    LONG,
    0,
    "A record of a compacted topic stays at least this long, whatever comes after it.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = broker_setting(
    "log.cleaner.max.compaction.lag.ms",
    LONG,
    LONG_MAX,
    "A record of a compacted topic waits at most this long before it can be compacted.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
)
LOG_PREALLOCATE = broker_setting(
    "log.preallocate",
    BOOLEAN,
    False,
    "Take a segment's full size from the disk when it is made.",
    update=Update.CLUSTER_WIDE,
)
COMPRESSION_TYPE = broker_setting(
    "compression.type",
    STRING,
    "producer",
    "How batches are stored; `producer` keeps each as its producer sent it.",
    update=Update.CLUSTER_WIDE,
    rule=COMPRESSION_TYPES,
)
COMPRESSION_GZIP_LEVEL = broker_setting(
    "compression.gzip.level",
    INT,
    -1,
    "How hard gzip tries, where `compression.type` is `gzip`.",
    update=Update.CLUSTER_WIDE,
    rule=GZIP_LEVELS,
)
COMPRESSION_LZ4_LEVEL = broker_setting(
    "compression.lz4.level",
    INT,
    9,
    "How hard lz4 tries, where `compression.type` is `lz4`; 9 stands for its fast compressor.",
    update=Update.CLUSTER_WIDE,
    rule=LZ4_LEVELS,
)
COMPRESSION_ZSTD_LEVEL = broker_setting(
    "compression.zstd.level",
    INT,
    3,
    "How hard zstd tries, where `compression.type` is `zstd`.",
    update=Update.CLUSTER_WIDE,
    rule=ZSTD_LEVELS,
)
UNCLEAN_LEADER_ELECTION_ENABLE = broker_setting(
    "unclean.leader.election.enable",
    BOOLEAN,
    False,
    "Whether a replica that is not in sync may become leader when no other is left.",
    update=Update.CLUSTER_WIDE,
)
LOG_LOCAL_RETENTION_MS = broker_setting(
    "log.local.retention.ms",
    LONG,
    -2,
    "How long a segment stays here that is in tiered storage; -2 means `log.retention.ms`.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(-2),
    unread=NO_TIERED_STORAGE,
)
LOG_LOCAL_RETENTION_BYTES = broker_setting(
    "log.local.retention.bytes",
    LONG,
    -2,
    "How much of a partition stays here beside tiered storage; -2 means `log.retention.bytes`.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(-2),
    unread=NO_TIERED_STORAGE,
)
MIN_INSYNC_REPLICAS = broker_setting(
    "min.insync.replicas",
    INT,
    1,
    "Replicas that must have a record before `acks=all` is answered.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
)
