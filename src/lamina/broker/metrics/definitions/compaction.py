"""Compaction (facts 99, 100 and 102)."""

from lamina.broker.metrics.metric import counter, gauge

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
