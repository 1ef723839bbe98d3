"""The broker as a whole."""

from lamina.broker.metrics.metric import counter, gauge

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
    "`coordinator`: the groups of one partition were loaded again; `replication`: partitions are fetched again later; "
    "`cleaning`: that pass failed; `move`: that move ended; "
    "`metadata`: the broker goes down.",
    "place",
)
KERNEL_LOADED = gauge("lamina_kernel_loaded", "1 when records are checked by compiled code, 0 for plain Python.")
