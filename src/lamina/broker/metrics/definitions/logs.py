"""Partition logs and the directories that they lie in."""

from lamina.broker.metrics.metric import counter, gauge, histogram

_LOG = "kafka.log:type=Log,name={},topic=*,partition=*"
_REPLICAS = "kafka.server:type=ReplicaManager,name={}"

LOG_SIZE = gauge(
    "lamina_log_size_bytes", "Bytes of a partition's segments.", "topic", "partition", kafka=_LOG.format("Size")
)
LOG_SEGMENTS = gauge(
    "lamina_log_segments", "Segments of a partition.", "topic", "partition", kafka=_LOG.format("NumLogSegments")
)
LOG_START_OFFSET = gauge(
    "lamina_log_start_offset",
    "The first offset that can be read.",
    "topic",
    "partition",
    kafka=_LOG.format("LogStartOffset"),
)
LOG_END_OFFSET = gauge(
    "lamina_log_end_offset",
    "The offset that the next record gets.",
    "topic",
    "partition",
    kafka=_LOG.format("LogEndOffset"),
)
HIGH_WATERMARK = gauge("lamina_high_watermark", "The offset up to which consumers read.", "topic", "partition")
LAST_STABLE_OFFSET = gauge(
    "lamina_last_stable_offset",
    "The offset up to which consumers of committed records read.",
    "topic",
    "partition",
    kafka="kafka.cluster:type=Partition,name=LastStableOffsetLag,topic=*,partition=* (as a distance)",
)
PARTITIONS = gauge("lamina_partitions", "Partitions on this broker.", kafka=_REPLICAS.format("PartitionCount"))
OFFLINE_PARTITIONS = gauge(
    "lamina_offline_partitions",
    "Those of them that answer with a storage error.",
    kafka=_REPLICAS.format("OfflineReplicaCount"),
)
FLUSH_DURATION = histogram(
    "lamina_flush_duration_seconds",
    "How long flushes of a partition's files took on their thread; its count is the number of flushes.",
    kafka="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
)
OFFLINE_LOG_DIRECTORIES = gauge(
    "lamina_offline_log_directories",
    "How many log directories have failed.",
    kafka="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
)
LOG_DIRECTORY_OFFLINE = gauge(
    "lamina_log_directory_offline",
    "1 for a log directory that failed.",
    "directory",
    kafka="kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=*",
)
LOG_DIRECTORY_LOW = gauge(
    "lamina_log_directory_low",
    "1 while nothing is written to a log directory because less than `lamina.disk.free.min.bytes` is free.",
    "directory",
)
READ_LEASES = gauge("lamina_read_leases", "Readers in other processes that hold files of a log directory.", "directory")
READ_LEASES_HELD = gauge(
    "lamina_read_leases_held_bytes",
    "What only those readers keep on the disk: the logs have no use for it any more.",
    "directory",
)
READ_LEASES_GRANTED = counter("lamina_read_leases_granted_total", "Times that files were lent to such a reader.")
READ_LEASES_ENDED = counter(
    "lamina_read_leases_ended_total",
    "Ends of such leases: `given_back`, `lapsed` because the reader was not heard of, `revoked` because the disk was "
    "nearly full.",
    "how",
)
LOG_DIRECTORY_MOVES = gauge(
    "lamina_log_directory_moves", "Partitions that are being moved to another log directory of this broker."
)
LOG_DIRECTORY_MOVE_MAX_LAG = gauge(
    "lamina_log_directory_move_max_lag",
    "Offsets that copies in other log directories are behind their logs, the most of all partitions that are moved.",
    kafka="kafka.server:type=ReplicaAlterLogDirsManager,name=MaxLag,clientId=ReplicaAlterLogDirs",
)
LOG_DIRECTORY_MOVED_BYTES = counter(
    "lamina_log_directory_moved_bytes_total",
    "Bytes of batches that were copied from one log directory of this broker to another.",
)
LOG_DIRECTORY_FREE = gauge(
    "lamina_log_directory_free_bytes", "Room left on the log directory's file system.", "directory"
)
LOG_DIRECTORY_CAPACITY = gauge(
    "lamina_log_directory_capacity_bytes", "The size of the log directory's file system.", "directory"
)
