"""What a broker is, where its logs lie and how its topics come and go.

Owns the settings of a broker as a whole, but no defaults of a topic's own settings. Must not know how they are read.
"""

from lamina.settings.definition import Fallback, Update, broker_setting
from lamina.settings.kinds import BOOLEAN, INT, LIST, LONG, STRING, Rule, at_least
from lamina.settings.log_config import DAY_MS, MEBIBYTE

DIRECTORIES: Rule[tuple[str, ...]] = Rule(
    "a list of one or more directories, each named once", lambda value: 0 < len(value) == len(set(value))
)

BROKER_ID = broker_setting("broker.id", INT, None, "`node.id` under its older name, when that is not given.")
NODE_ID = broker_setting(
    "node.id",
    INT,
    1,
    "The number of this broker, its own in a cluster. -1 is none: then a member of a cluster gets one from ZooKeeper.",
    rule=at_least(-1),
    fallbacks=(Fallback(BROKER_ID),),
    difference="Kafka has no default",
)
LAMINA_DATA_DIR = broker_setting(
    "lamina.data.dir",
    STRING,
    "lamina-data",
    "Where the broker keeps its own file, `metadata.db`, and its logs if `log.dirs` does not say otherwise.",
    difference="Kafka has no such setting",
)
LOG_DIR = broker_setting(
    "log.dir",
    LIST,
    None,
    "`log.dirs`, when that is not given.",
    rule=DIRECTORIES,
    difference="Kafka's default is `/tmp/kafka-logs`; here it is `logs` inside `lamina.data.dir`",
)
LOG_DIRS = broker_setting(
    "log.dirs",
    LIST,
    None,
    "The directories that hold the logs.",
    rule=DIRECTORIES,
    fallbacks=(Fallback(LOG_DIR),),
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = broker_setting(
    "num.recovery.threads.per.data.dir",
    INT,
    2,
    "Threads for each log directory that recover logs at start. Eight times as many flush them at shutdown, where "
    "they only wait for the disk; with 1 it is done one by one.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
)
PRODUCER_ID_EXPIRATION_MS = broker_setting(
    "producer.id.expiration.ms",
    INT,
    DAY_MS,
    "A producer that has been silent this long, with no open transaction, is forgotten.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(1),
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = broker_setting(
    "log.flush.offset.checkpoint.interval.ms",
    INT,
    60_000,
    "How often the recovery points are written.",
    rule=at_least(0),
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = broker_setting(
    "log.flush.start.offset.checkpoint.interval.ms",
    INT,
    60_000,
    "How often the log start offsets are written.",
    rule=at_least(0),
)
BROKER_RACK = broker_setting("broker.rack", STRING, None, "Where this broker stands; told to clients.")
LOG_RETENTION_CHECK_INTERVAL_MS = broker_setting(
    "log.retention.check.interval.ms", LONG, 300_000, "How often retention looks for old segments.", rule=at_least(1)
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = broker_setting(
    "replica.high.watermark.checkpoint.interval.ms", LONG, 5000, "How often the high watermarks are written."
)
LAMINA_DISK_FREE_MIN_BYTES = broker_setting(
    "lamina.disk.free.min.bytes",
    LONG,
    256 * MEBIBYTE,
    "When less than this is free on the disk of a log directory, producers are refused there (POLICY_VIOLATION) and no "
    "topics are made, until a tenth more is free; 0 for never.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    difference="Kafka writes on until the disk is full and the directory offline",
)
LAMINA_READ_LEASES_MAX = broker_setting(
    "lamina.read.leases.max",
    INT,
    1000,
    "How many readers in other processes, each of at most 16 segments of a partition, may hold files of this broker at "
    "once, to read them without Fetch; 0 lends none.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    difference="Kafka has no such reader",
)
LAMINA_DECOMPRESSED_BATCH_MAX_BYTES = broker_setting(
    "lamina.decompressed.batch.max.bytes",
    INT,
    64 * MEBIBYTE,
    "How large the records of one compressed batch may be, or `max.message.bytes` of its topic where that is more; a "
    "larger batch is refused as too large.",
    rule=at_least(MEBIBYTE),
    difference="Kafka has no such bound",
)
AUTO_CREATE_TOPICS_ENABLE = broker_setting(
    "auto.create.topics.enable", BOOLEAN, True, "Whether a topic is made when a client first asks for it."
)
DELETE_TOPIC_ENABLE = broker_setting("delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted.")
NUM_PARTITIONS = broker_setting(
    "num.partitions", INT, 1, "Partitions of a topic whose maker does not say.", rule=at_least(1)
)
DEFAULT_REPLICATION_FACTOR = broker_setting(
    "default.replication.factor", INT, 1, "Replicas of a topic whose maker does not say.", rule=at_least(1)
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = broker_setting(
    "max.request.partition.size.limit",
    INT,
    2000,
    "Partitions that one answer of DescribeTopicPartitions tells of; the client asks for the rest.",
    rule=at_least(1),
)
