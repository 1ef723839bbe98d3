"""Transactions.

Owns the broker's settings for transactions. Must not know how they are read.
"""

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import BOOLEAN, INT, SHORT, at_least

TRANSACTION_PARTITION_VERIFICATION_ENABLE = broker_setting(
    "transaction.partition.verification.enable",
    BOOLEAN,
    True,
    "Whether the first batch of a transaction in a partition is checked with the transaction coordinator, so that "
    "nothing is written into a transaction that has ended.",
    update=Update.CLUSTER_WIDE,
)
TRANSACTION_MAX_TIMEOUT_MS = broker_setting(
    "transaction.max.timeout.ms",
    INT,
    15 * 60 * 1000,
    "The longest timeout that a transactional producer may ask for.",
    rule=at_least(1),
)
TRANSACTIONAL_ID_EXPIRATION_MS = broker_setting(
    "transactional.id.expiration.ms",
    INT,
    7 * 24 * 60 * 60 * 1000,
    "How long an unused transactional id is remembered.",
    rule=at_least(1),
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = broker_setting(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    INT,
    10_000,
    "How often open transactions are looked at for their timeout.",
    rule=at_least(1),
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = broker_setting(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    INT,
    60 * 60 * 1000,
    "How often transactional ids are looked at for their expiration.",
    rule=at_least(1),
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS = broker_setting(
    "transaction.state.log.num.partitions",
    INT,
    50,
    "Partitions of `__transaction_state` when it is made; must not be changed later.",
    rule=at_least(1),
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = broker_setting(
    "transaction.state.log.replication.factor",
    SHORT,
    3,
    "Replicas of `__transaction_state` when it is made. A broker without a cluster makes one unless this is set.",
    rule=at_least(1),
)
TRANSACTION_STATE_LOG_MIN_ISR = broker_setting(
    "transaction.state.log.min.isr",
    INT,
    2,
    "`min.insync.replicas` of `__transaction_state`. A broker without a cluster needs one unless this is set.",
    rule=at_least(1),
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = broker_setting(
    "transaction.state.log.segment.bytes",
    INT,
    104_857_600,
    "`segment.bytes` of `__transaction_state`.",
    rule=at_least(1),
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS = broker_setting(
    "add.partitions.to.txn.retry.backoff.ms",
    INT,
    20,
    "How long a batch that adds its partition to a transaction waits, while the one before is being ended, until it is "
    "tried again.",
    rule=at_least(1),
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS = broker_setting(
    "add.partitions.to.txn.retry.backoff.max.ms",
    INT,
    100,
    "How long such a batch waits in all, before its client is told to try again.",
    rule=at_least(0),
)
