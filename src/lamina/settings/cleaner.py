"""How the cleaner of compacted topics works.

Owns its settings. Must not know how a log is cleaned.
"""

import sys

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import BOOLEAN, DOUBLE, INT, LONG, Rule, at_least
from lamina.settings.log_config import MEBIBYTE

LOG_CLEANER_ENABLE = broker_setting(
    "log.cleaner.enable",
    BOOLEAN,
    True,
    "Whether compacted topics are compacted, and lose what lies below their log start.",
)
LOG_CLEANER_THREADS = broker_setting(
    "log.cleaner.threads",
    INT,
    1,
    "Passes that share the cleaner's memory; it may at most double or halve at once while the broker runs.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = broker_setting(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE,
    sys.float_info.max,
    "What all passes together read and write in a second at most.",
    update=Update.CLUSTER_WIDE,
    rule=Rule("more than 0", lambda value: value > 0),
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = broker_setting(
    "log.cleaner.dedupe.buffer.size",
    LONG,
    128 * MEBIBYTE,
    "Memory for the keys of all passes together; a log with more keys is sorted on disk instead.",
    update=Update.CLUSTER_WIDE,
    difference="Kafka takes it for a limit of keys per pass; here no pass is cut short by it",
)
LOG_CLEANER_IO_BUFFER_SIZE = broker_setting(
    "log.cleaner.io.buffer.size",
    INT,
    512 * 1024,
    "How much of what a pass wrote is read at a time to check it, divided by `log.cleaner.threads`.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
    difference="Kafka's cleaner copies in pieces of this size",
)
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR = broker_setting(
    "log.cleaner.io.buffer.load.factor",
    DOUBLE,
    0.9,
    "How much of `log.cleaner.dedupe.buffer.size` is filled with keys.",
    update=Update.CLUSTER_WIDE,
)
LOG_CLEANER_BACKOFF_MS = broker_setting(
    "log.cleaner.backoff.ms",
    LONG,
    15_000,
    "How long the cleaner waits before it looks again, when no log was to be cleaned.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
LAMINA_CLEANER_EXPIRE_IDLE = broker_setting(
    "lamina.cleaner.expire.idle",
    BOOLEAN,
    False,
    "Also remove expired tombstones and markers from topics that are no longer written to.",
    update=Update.CLUSTER_WIDE,
    difference="Kafka leaves them until something new makes the log dirty",
)
