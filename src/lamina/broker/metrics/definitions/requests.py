"""Requests and their times, parked fetches and fetch sessions."""

from lamina.broker.metrics.metric import counter, gauge, histogram

_REQUEST = "kafka.network:type=RequestMetrics,name={},request=*"
_SESSIONS = "kafka.server:type=FetchSessionCache,name={}"

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
THROTTLED_REQUESTS = counter(
    "lamina_throttled_requests_total",
    "How often a client was told to wait, by the quota that it had exceeded.",
    "quota",
)
THROTTLE_TIME = counter(
    "lamina_throttle_time_seconds_total",
    "How long clients were told to wait, all together.",
    "quota",
    kafka="kafka.server:type={Produce,Fetch,Request,ControllerMutation},user=*,client-id=*,name=throttle-time (nearly)",
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
