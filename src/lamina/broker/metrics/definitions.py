"""Every metric that a broker exposes, in the order of docs/metrics.md.

Owns the one list: what is not here is not exposed, and what is here is. Must not know where values come from.
"""

from lamina.broker.metrics.definition import Metric, counter, gauge, histogram

_TOPIC = "kafka.server:type=BrokerTopicMetrics,name={},topic=*"
_REQUEST = "kafka.network:type=RequestMetrics,name={},request=*"
_SOCKETS = "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*, {}"
_LOG = "kafka.log:type=Log,name={},topic=*,partition=*"
_REPLICAS = "kafka.server:type=ReplicaManager,name={}"
_SESSIONS = "kafka.server:type=FetchSessionCache,name={}"

# The broker
BUILD_INFO = gauge(
    "lamina_build_info", "1; the labels say what runs here.", "version", "python", kafka="kafka.server:type=app-info"
)
START_TIME = gauge(
    "lamina_start_time_seconds",
    "When the broker started, in seconds since 1970.",
    kafka="kafka.server:type=app-info, start-time-ms",
)
UNEXPECTED_EXCEPTIONS = counter(
    "lamina_unexpected_exceptions_total",
    "Faults of the broker's own code, by where they were caught; each has a traceback in the log. "
    "`handler`: the request got UNKNOWN_SERVER_ERROR; `records`: so did its batch; `partition`: it went offline; "
    "`timer`: one run was skipped; `connection`: it was closed; `admin`: the HTTP request got 500; "
    "`metadata`: the broker goes down.",
    "place",
)
KERNEL_LOADED = gauge("lamina_kernel_loaded", "1 when records are checked by compiled code, 0 for plain Python.")

# Topics
TOPIC_IN_MESSAGES = counter(
    "lamina_topic_in_messages_total",
    "Records that producers sent and the broker took, retries of known batches included.",
    "topic",
    kafka=_TOPIC.format("MessagesInPerSec"),
)
TOPIC_IN_BYTES = counter(
    "lamina_topic_in_bytes_total",
    "Bytes of the batches that producers sent and the broker took.",
    "topic",
    kafka=_TOPIC.format("BytesInPerSec"),
)
TOPIC_OUT_BYTES = counter(
    "lamina_topic_out_bytes_total",
    "Bytes of the batches in answers to consumers. How many records they hold is not known: as in Kafka, "
    "batches leave unopened.",
    "topic",
    kafka=_TOPIC.format("BytesOutPerSec"),
)
TOPIC_REJECTED_BYTES = counter(
    "lamina_topic_rejected_bytes_total",
    "Bytes of batches that were larger than `max.message.bytes`.",
    "topic",
    kafka=_TOPIC.format("BytesRejectedPerSec"),
)
TOPIC_PRODUCE_REQUESTS = counter(
    "lamina_topic_produce_requests_total",
    "Batches that producers sent, one for each partition of a request.",
    "topic",
    kafka=_TOPIC.format("TotalProduceRequestsPerSec"),
)
TOPIC_PRODUCE_FAILURES = counter(
    "lamina_topic_produce_failures_total",
    "Those of them that were refused or failed, whosever fault it was.",
    "topic",
    kafka=_TOPIC.format("FailedProduceRequestsPerSec"),
)
TOPIC_FETCH_REQUESTS = counter(
    "lamina_topic_fetch_requests_total",
    "Partitions that Fetch answers were made from.",
    "topic",
    kafka=_TOPIC.format("TotalFetchRequestsPerSec"),
)
TOPIC_FETCH_FAILURES = counter(
    "lamina_topic_fetch_failures_total",
    "Those of them that got an error.",
    "topic",
    kafka=_TOPIC.format("FailedFetchRequestsPerSec"),
)

# Requests
REQUESTS = counter(
    "lamina_requests_total",
    "Requests that were answered.",
    "api",
    "version",
    kafka="kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*",
)
REQUEST_ERRORS = counter(
    "lamina_request_errors_total",
    "Errors in answers, each partition's counted; `NONE` counts the requests whose answers have none.",
    "api",
    "version",
    "error",
    kafka="kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=*,error=*",
)
REQUEST_DURATION = histogram(
    "lamina_request_duration_seconds",
    "From the last byte of a request to the last byte of its answer, as the sum of queue, local, threads, remote and "
    "send.",
    "api",
    kafka=_REQUEST.format("TotalTimeMs"),
)
REQUEST_ARRIVAL = histogram(
    "lamina_request_arrival_seconds",
    "From a request's first bytes to its last, waiting for memory included. Not part of the duration.",
    "api",
)
REQUEST_QUEUE = histogram(
    "lamina_request_queue_seconds",
    "Behind others that arrived together with it.",
    "api",
    kafka=_REQUEST.format("RequestQueueTimeMs"),
)
REQUEST_LOCAL = histogram(
    "lamina_request_local_seconds", "In its handler, on the event loop.", "api", kafka=_REQUEST.format("LocalTimeMs")
)
REQUEST_THREADS = histogram(
    "lamina_request_threads_seconds",
    "Waiting for threads: flushes, cold reads, large batches, metadata changes. Kafka counts it as local.",
    "api",
)
REQUEST_REMOTE = histogram(
    "lamina_request_remote_seconds",
    "Parked: a fetch that waits for more records, as its client wished.",
    "api",
    kafka=_REQUEST.format("RemoteTimeMs"),
)
REQUEST_SEND = histogram(
    "lamina_request_send_seconds",
    "From the finished answer to its last byte in the socket.",
    "api",
    kafka=_REQUEST.format("ResponseSendTimeMs"),
)
SLOW_REQUESTS = counter(
    "lamina_slow_requests_total", "Requests that took `lamina.slow.request.ms` or more, not counting being parked."
)
PARKED_FETCHES = gauge(
    "lamina_parked_fetches",
    "Fetches that wait for more records.",
    kafka="kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=Fetch",
)
FETCH_SESSIONS = gauge(
    "lamina_fetch_sessions",
    "Incremental fetch sessions that are remembered.",
    kafka=_SESSIONS.format("NumIncrementalFetchSessions"),
)
FETCH_SESSION_PARTITIONS = gauge(
    "lamina_fetch_session_partitions",
    "Partitions in all of them.",
    kafka=_SESSIONS.format("NumIncrementalFetchPartitionsCached"),
)
FETCH_SESSION_EVICTIONS = counter(
    "lamina_fetch_session_evictions_total",
    "Sessions that made room for others.",
    kafka=_SESSIONS.format("IncrementalFetchSessionEvictionsPerSec"),
)

# Connections
CONNECTIONS = gauge("lamina_connections", "Open connections.", "listener", kafka=_SOCKETS.format("connection-count"))
CONNECTIONS_CREATED = counter(
    "lamina_connections_created_total",
    "Connections that were accepted.",
    "listener",
    kafka=_SOCKETS.format("connection-creation-total"),
)
CONNECTIONS_CLOSED = counter(
    "lamina_connections_closed_total",
    "Connections that ended. `client`: it closed; `error`: the socket failed; `idle`: `connections.max.idle.ms`; "
    "`refused`: what it sent is no request; `arrival`: its request did not arrive and others waited for memory; "
    "`excess`: `max.connections`; `failure`: the broker's own fault; `stop`: the broker stopped.",
    "reason",
    kafka=_SOCKETS.format("connection-close-total"),
)
CONNECTIONS_REFUSED = counter(
    "lamina_connections_refused_total",
    "Connections that were turned away. `descriptors`: no open file was left, or the system refused; `per_ip`: "
    "`max.connections.per.ip`.",
    "reason",
)
CONNECTIONS_HELD_BACK = counter(
    "lamina_connections_held_back_total",
    "How often a listener stopped accepting for a while. `room`: `max.connections`; `rate`: "
    "`max.connection.creation.rate`.",
    "reason",
    kafka="kafka.network:type=Acceptor,name=AcceptorBlockedPercent,listener=* (nearly)",
)
NETWORK_IN_BYTES = counter(
    "lamina_network_in_bytes_total", "Bytes received from clients.", kafka=_SOCKETS.format("incoming-byte-total")
)
NETWORK_OUT_BYTES = counter(
    "lamina_network_out_bytes_total", "Bytes of answers to clients.", kafka=_SOCKETS.format("outgoing-byte-total")
)
REQUEST_MEMORY_HELD = gauge(
    "lamina_request_memory_held_bytes",
    "Memory of large requests that arrive or are served.",
    kafka="kafka.network:type=SocketServer,name=MemoryPoolUsed",
)
REQUEST_MEMORY_LIMIT = gauge("lamina_request_memory_limit_bytes", "`queued.max.request.bytes`.")
REQUEST_MEMORY_WAITING = gauge(
    "lamina_request_memory_waiting", "Connections whose request waits for memory before it is read."
)

# Logs
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
LOG_DIRECTORY_FREE = gauge(
    "lamina_log_directory_free_bytes", "Room left on the log directory's file system.", "directory"
)
LOG_DIRECTORY_CAPACITY = gauge(
    "lamina_log_directory_capacity_bytes", "The size of the log directory's file system.", "directory"
)

# Compaction
_CLEANER = "kafka.log:type=LogCleaner,name={}"
_CLEANER_MANAGER = "kafka.log:type=LogCleanerManager,name={}"
CLEANER_ENGINE_MISSING = gauge(
    "lamina_cleaner_engine_missing", "1 when no compacted topic is being compacted: `/v1/cleaner` says why."
)
CLEANER_COMPACTED_PARTITIONS = gauge(
    "lamina_cleaner_compacted_partitions", "Partitions whose `cleanup.policy` has `compact`."
)
CLEANER_DEAD = gauge(
    "lamina_cleaner_dead", "1 when the cleaner should run and does not.", kafka=_CLEANER.format("DeadThreadCount")
)
CLEANER_OPEN_PASSES = gauge("lamina_cleaner_open_passes", "Passes that are under way.")
CLEANER_MAX_DIRTY_PERCENT = gauge(
    "lamina_cleaner_max_dirty_percent",
    "The dirtiest log's share of dirty bytes when the cleaner last looked, eligible or not.",
    kafka=_CLEANER_MANAGER.format("max-dirty-percent"),
)
CLEANER_TIME_SINCE_LOOK = gauge(
    "lamina_cleaner_time_since_last_run_seconds",
    "Since the cleaner last chose what to clean.",
    kafka=_CLEANER_MANAGER.format("time-since-last-run-ms"),
)
CLEANER_MAX_DELAY = gauge(
    "lamina_cleaner_max_compaction_delay_seconds",
    "How long the most overdue log waits beyond `max.compaction.lag.ms`.",
    kafka=_CLEANER.format("max-compaction-delay-secs"),
)
CLEANER_MAX_CLEAN_TIME = gauge(
    "lamina_cleaner_max_clean_time_seconds",
    "The longest of the last passes of each partition.",
    kafka=_CLEANER.format("max-clean-time-secs"),
)
CLEANER_RECOPY_PERCENT = gauge(
    "lamina_cleaner_recopy_percent",
    "How much of what the last passes of each partition went over was still there after them.",
    kafka=_CLEANER.format("cleaner-recopy-percent"),
)
CLEANER_BUFFER_PERCENT = gauge(
    "lamina_cleaner_max_buffer_utilization_percent",
    "How much of a pass's memory the keys of the last passes of each partition would take at 24 bytes each; above 100 "
    "a pass goes through the disk instead.",
    kafka=_CLEANER.format("max-buffer-utilization-percent"),
)
CLEANER_UNCLEANABLE_PARTITIONS = gauge(
    "lamina_cleaner_uncleanable_partitions",
    "Partitions whose log is damaged and cannot be cleaned; they are tried again.",
    "directory",
    kafka="kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,logDirectory=*",
)
CLEANER_UNCLEANABLE_BYTES = gauge(
    "lamina_cleaner_uncleanable_bytes",
    "What could be cleaned of those if they were not.",
    "directory",
    kafka="kafka.log:type=LogCleanerManager,name=uncleanable-bytes,logDirectory=*",
)
CLEANER_PASSES = counter(
    "lamina_cleaner_passes_total",
    "Passes that ended: `cleaned`; `failed` and `uncleanable`, to be tried again; `aborted`, because the topic went, "
    "was cut or is no longer compacted.",
    "outcome",
)
CLEANER_READ_BYTES = counter(
    "lamina_cleaner_read_bytes_total", "Bytes that passes read.", kafka="kafka.utils:type=Throttler,name=cleaner-io"
)
CLEANER_WRITTEN_BYTES = counter(
    "lamina_cleaner_written_bytes_total",
    "Bytes that passes wrote.",
    kafka="kafka.utils:type=Throttler,name=cleaner-io",
)
CLEANER_READ_RECORDS = counter("lamina_cleaner_read_records_total", "Records in the segments that passes rewrote.")
CLEANER_WRITTEN_RECORDS = counter("lamina_cleaner_written_records_total", "Records that were left of them.")
CLEANER_PHASE_SECONDS = counter(
    "lamina_cleaner_phase_seconds_total",
    "Where the time of passes went: `gather`, `engine` and `install` as the broker saw them; of `engine`, as the jobs "
    "say, `verdicts`, `keys`, `rewrite` and `throttled`.",
    "phase",
)

# The machine
EVENT_LOOP_LAG = histogram(
    "lamina_event_loop_lag_seconds",
    "How late a timer came that is due ten times a second: what a request waits for the loop.",
    kafka="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent (the same worry)",
)
THREADS_BUSY = gauge("lamina_threads_busy", "Threads at work for the loop.")
THREADS_QUEUED = gauge(
    "lamina_threads_queued",
    "Pieces of work that no thread has taken yet.",
    kafka="kafka.network:type=RequestChannel,name=RequestQueueSize (nearly)",
)
THREADS_BUSY_SECONDS = counter("lamina_threads_busy_seconds_total", "Time that threads were at work.")
PROCESS_RESIDENT_MEMORY = gauge(
    "lamina_process_resident_memory_bytes", "Memory of the process, mapped files included. Linux only."
)
PROCESS_CPU_SECONDS = counter("lamina_process_cpu_seconds_total", "Processor time of the process, all threads.")
PROCESS_OPEN_DESCRIPTORS = gauge(
    "lamina_process_open_descriptors",
    "Open files and sockets.",
    kafka="java.lang:type=OperatingSystem, OpenFileDescriptorCount",
)
PROCESS_MAX_DESCRIPTORS = gauge(
    "lamina_process_max_descriptors",
    "How many may be open.",
    kafka="java.lang:type=OperatingSystem, MaxFileDescriptorCount",
)

SECTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("The broker", (BUILD_INFO, START_TIME, UNEXPECTED_EXCEPTIONS, KERNEL_LOADED)),
    (
        "Topics",
        (
            TOPIC_IN_MESSAGES,
            TOPIC_IN_BYTES,
            TOPIC_OUT_BYTES,
            TOPIC_REJECTED_BYTES,
            TOPIC_PRODUCE_REQUESTS,
            TOPIC_PRODUCE_FAILURES,
            TOPIC_FETCH_REQUESTS,
            TOPIC_FETCH_FAILURES,
        ),
    ),
    (
        "Requests",
        (
            REQUESTS,
            REQUEST_ERRORS,
            REQUEST_DURATION,
            REQUEST_ARRIVAL,
            REQUEST_QUEUE,
            REQUEST_LOCAL,
            REQUEST_THREADS,
            REQUEST_REMOTE,
            REQUEST_SEND,
            SLOW_REQUESTS,
            PARKED_FETCHES,
            FETCH_SESSIONS,
            FETCH_SESSION_PARTITIONS,
            FETCH_SESSION_EVICTIONS,
        ),
    ),
    (
        "Connections",
        (
            CONNECTIONS,
            CONNECTIONS_CREATED,
            CONNECTIONS_CLOSED,
            CONNECTIONS_REFUSED,
            CONNECTIONS_HELD_BACK,
            NETWORK_IN_BYTES,
            NETWORK_OUT_BYTES,
            REQUEST_MEMORY_HELD,
            REQUEST_MEMORY_LIMIT,
            REQUEST_MEMORY_WAITING,
        ),
    ),
    (
        "Logs",
        (
            LOG_SIZE,
            LOG_SEGMENTS,
            LOG_START_OFFSET,
            LOG_END_OFFSET,
            HIGH_WATERMARK,
            LAST_STABLE_OFFSET,
            PARTITIONS,
            OFFLINE_PARTITIONS,
            FLUSH_DURATION,
            LOG_DIRECTORY_OFFLINE,
            LOG_DIRECTORY_LOW,
            LOG_DIRECTORY_FREE,
            LOG_DIRECTORY_CAPACITY,
        ),
    ),
    (
        "The machine",
        (
            EVENT_LOOP_LAG,
            THREADS_BUSY,
            THREADS_QUEUED,
            THREADS_BUSY_SECONDS,
            PROCESS_RESIDENT_MEMORY,
            PROCESS_CPU_SECONDS,
            PROCESS_OPEN_DESCRIPTORS,
            PROCESS_MAX_DESCRIPTORS,
        ),
    ),
    (
        "Compaction",
        (
            CLEANER_ENGINE_MISSING,
            CLEANER_COMPACTED_PARTITIONS,
            CLEANER_DEAD,
            CLEANER_OPEN_PASSES,
            CLEANER_MAX_DIRTY_PERCENT,
            CLEANER_TIME_SINCE_LOOK,
            CLEANER_MAX_DELAY,
            CLEANER_MAX_CLEAN_TIME,
            CLEANER_RECOPY_PERCENT,
            CLEANER_BUFFER_PERCENT,
            CLEANER_UNCLEANABLE_PARTITIONS,
            CLEANER_UNCLEANABLE_BYTES,
            CLEANER_PASSES,
            CLEANER_READ_BYTES,
            CLEANER_WRITTEN_BYTES,
            CLEANER_READ_RECORDS,
            CLEANER_WRITTEN_RECORDS,
            CLEANER_PHASE_SECONDS,
        ),
    ),
)
METRICS: tuple[Metric, ...] = tuple(metric for _, metrics in SECTIONS for metric in metrics)
