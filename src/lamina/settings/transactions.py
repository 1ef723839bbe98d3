"""Transactions.

Owns the broker's settings for transactions. Must not know how they are read.
"""

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import BOOLEAN, INT, at_least

TRANSACTION_PARTITION_VERIFICATION_ENABLE = broker_setting(
    "transaction.partition.verification.enable",
    BOOLEAN,
    True,
    "Whether the first batch of a transaction in a partition is checked with the transaction coordinator, so that "
    "nothing is written into a transaction that has ended.",
    update=Update.CLUSTER_WIDE,
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
