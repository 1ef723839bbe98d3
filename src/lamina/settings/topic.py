"""What may be set on one topic.

Owns the topics' halves of the broker/topic pairs, with Kafka 4.1's ranges; their defaults are the broker's.
Must not know how an override reaches a log.
"""

import re

from lamina.settings import log
from lamina.settings.definition import Scope, Setting, Update, lone_topic_setting, topic_setting
from lamina.settings.kinds import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Rule, at_least, between
from lamina.settings.log_config import MEBIBYTE

EVERY_REPLICA = "*"
_REPLICA = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
THROTTLED_REPLICAS: Rule[tuple[str, ...]] = Rule(
    "`*` or a list of partition:broker", lambda value: value == (EVERY_REPLICA,) or all(map(_REPLICA.fullmatch, value))
)

SEGMENT_BYTES = topic_setting(
    "segment.bytes", INT, log.LOG_SEGMENT_BYTES, "Largest size of one segment file.", at_least(MEBIBYTE)
)
# Since Kafka 4.0 segment.bytes starts at 1 MiB; tests want smaller segments, and Kafka gives them this name.
INTERNAL_SEGMENT_BYTES: Setting[int] = Setting(
    "internal.segment.bytes",
    INT,
    None,
    "`segment.bytes` without its minimum, for tests.",
    Scope.TOPIC,
    Update.PER_TOPIC,
    at_least(1),
    hidden=True,
)
SEGMENT_MS = topic_setting(
    "segment.ms",
    LONG,
    log.LOG_ROLL_MS,
    "A segment is closed when its records span this long, even if it is not full.",
    at_least(1),
)
SEGMENT_JITTER_MS = topic_setting(
    "segment.jitter.ms",
    LONG,
    log.LOG_ROLL_JITTER_MS,
    "Up to this much is taken off `segment.ms` at random, so that logs do not all roll together.",
    at_least(0),
)
SEGMENT_INDEX_BYTES = topic_setting(
    "segment.index.bytes",
    INT,
    log.LOG_INDEX_SIZE_MAX_BYTES,
    "Space kept for each index of the active segment; a full index closes the segment.",
    at_least(4),
)
INDEX_INTERVAL_BYTES = topic_setting(
    "index.interval.bytes",
    INT,
    log.LOG_INDEX_INTERVAL_BYTES,
    "An index entry is added after about this many bytes.",
    at_least(0),
)
RETENTION_MS = topic_setting(
    "retention.ms",
    LONG,
    log.LOG_RETENTION_MS,
    "A closed segment older than this is deleted; -1 means no limit.",
    at_least(-1),
)
RETENTION_BYTES = topic_setting(
    "retention.bytes",
    LONG,
    log.LOG_RETENTION_BYTES,
    "The oldest segments go while a partition is larger than this; negative means no limit.",
)
FILE_DELETE_DELAY_MS = topic_setting(
    "file.delete.delay.ms",
    LONG,
    log.LOG_SEGMENT_DELETE_DELAY_MS,
    "How long a deleted file stays on the disk for readers that still hold it.",
    at_least(0),
)
FLUSH_MESSAGES = topic_setting(
    "flush.messages", LONG, log.LOG_FLUSH_INTERVAL_MESSAGES, "fsync after this many records.", at_least(1)
)
FLUSH_MS = topic_setting("flush.ms", LONG, log.LOG_FLUSH_INTERVAL_MS, "fsync what has waited this long.", at_least(0))
CLEANUP_POLICY = topic_setting(
    "cleanup.policy",
    LIST,
    log.LOG_CLEANUP_POLICY,
    "What happens to old records: `delete` them by age and size, `compact` them by key, or both.",
    log.CLEANUP_POLICIES,
)
MAX_MESSAGE_BYTES = topic_setting(
    "max.message.bytes",
    INT,
    log.MESSAGE_MAX_BYTES,
    "Largest record batch that is accepted, counted as it is sent.",
    at_least(0),
)
MESSAGE_TIMESTAMP_TYPE = topic_setting(
    "message.timestamp.type",
    STRING,
    log.LOG_MESSAGE_TIMESTAMP_TYPE,
    "Whose clock dates a record: the producer's, or the broker's at the append.",
    log.TIMESTAMP_TYPES,
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = topic_setting(
    "message.timestamp.before.max.ms",
    LONG,
    log.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    "A record dated further than this into the past is refused (`CreateTime` only).",
    at_least(0),
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = topic_setting(
    "message.timestamp.after.max.ms",
    LONG,
    log.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    "A record dated further than this into the future is refused (`CreateTime` only).",
    at_least(0),
)
MIN_CLEANABLE_DIRTY_RATIO = topic_setting(
    "min.cleanable.dirty.ratio",
    DOUBLE,
    log.LOG_CLEANER_MIN_CLEANABLE_RATIO,
    "A log is compacted when more than this share of its closed segments is dirty.",
    between(0, 1),
)
DELETE_RETENTION_MS = topic_setting(
    "delete.retention.ms",
    LONG,
    log.LOG_CLEANER_DELETE_RETENTION_MS,
    "How long a tombstone or a transaction's marker stays after the first pass that met it.",
    at_least(0),
)
MIN_COMPACTION_LAG_MS = topic_setting(
    "min.compaction.lag.ms",
    LONG,
    log.LOG_CLEANER_MIN_COMPACTION_LAG_MS,
    "A record of a compacted topic stays at least this long, whatever comes after it.",
    at_least(0),
)
MAX_COMPACTION_LAG_MS = topic_setting(
    "max.compaction.lag.ms",
    LONG,
    log.LOG_CLEANER_MAX_COMPACTION_LAG_MS,
    "A record of a compacted topic waits at most this long before it can be compacted.",
    at_least(1),
)
PREALLOCATE = topic_setting(
    "preallocate", BOOLEAN, log.LOG_PREALLOCATE, "Take a segment's full size from the disk when it is made."
)
COMPRESSION_TYPE = topic_setting(
    "compression.type",
    STRING,
    log.COMPRESSION_TYPE,
    "How batches are stored; `producer` keeps each as its producer sent it.",
    log.COMPRESSION_TYPES,
)
COMPRESSION_GZIP_LEVEL = topic_setting(
    "compression.gzip.level",
    INT,
    log.COMPRESSION_GZIP_LEVEL,
    "How hard gzip tries, where `compression.type` is `gzip`.",
    log.GZIP_LEVELS,
)
COMPRESSION_LZ4_LEVEL = topic_setting(
    "compression.lz4.level",
    INT,
    log.COMPRESSION_LZ4_LEVEL,
    "How hard lz4 tries, where `compression.type` is `lz4`; 9 stands for its fast compressor.",
    log.LZ4_LEVELS,
)
COMPRESSION_ZSTD_LEVEL = topic_setting(
    "compression.zstd.level",
    INT,
    log.COMPRESSION_ZSTD_LEVEL,
    "How hard zstd tries, where `compression.type` is `zstd`.",
    log.ZSTD_LEVELS,
)
UNCLEAN_LEADER_ELECTION_ENABLE = topic_setting(
    "unclean.leader.election.enable",
    BOOLEAN,
    log.UNCLEAN_LEADER_ELECTION_ENABLE,
    "Whether a replica that is not in sync may become leader when no other is left.",
)
LEADER_REPLICATION_THROTTLED_REPLICAS = lone_topic_setting(
    "leader.replication.throttled.replicas",
    LIST,
    (),
    "The replicas that send no faster than `leader.replication.throttled.rate` while they lead; `*` is all.",
    THROTTLED_REPLICAS,
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = lone_topic_setting(
    "follower.replication.throttled.replicas",
    LIST,
    (),
    "The replicas that fetch no faster than `follower.replication.throttled.rate`; `*` is all.",
    THROTTLED_REPLICAS,
)
REMOTE_STORAGE_ENABLE = lone_topic_setting(
    "remote.storage.enable",
    BOOLEAN,
    False,
    "Whether closed segments are copied to tiered storage.",
    Rule("false: Lamina has no tiered storage", lambda value: not value),
    unread=log.NO_TIERED_STORAGE,
)
REMOTE_LOG_COPY_DISABLE = lone_topic_setting(
    "remote.log.copy.disable",
    BOOLEAN,
    False,
    "Whether what is in tiered storage is only read from now on.",
    unread=log.NO_TIERED_STORAGE,
)
REMOTE_LOG_DELETE_ON_DISABLE = lone_topic_setting(
    "remote.log.delete.on.disable",
    BOOLEAN,
    False,
    "Whether what is in tiered storage goes when `remote.storage.enable` becomes false.",
    unread=log.NO_TIERED_STORAGE,
)
LOCAL_RETENTION_MS = topic_setting(
    "local.retention.ms",
    LONG,
    log.LOG_LOCAL_RETENTION_MS,
    "How long a segment stays here that is in tiered storage; -2 means `retention.ms`.",
    at_least(-2),
)
LOCAL_RETENTION_BYTES = topic_setting(
    "local.retention.bytes",
    LONG,
    log.LOG_LOCAL_RETENTION_BYTES,
    "How much of a partition stays here beside tiered storage; -2 means `retention.bytes`.",
    at_least(-2),
)
MIN_INSYNC_REPLICAS = topic_setting(
    "min.insync.replicas",
    INT,
    log.MIN_INSYNC_REPLICAS,
    "Replicas that must have a record before `acks=all` is answered.",
    at_least(1),
)
