"""Transactions.

Owns the broker's settings for transactions. Must not know how they are read.
"""

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import BOOLEAN

TRANSACTION_PARTITION_VERIFICATION_ENABLE = broker_setting(
    "transaction.partition.verification.enable",
    BOOLEAN,
    True,
    "Whether the first batch of a transaction in a partition is checked with the transaction coordinator, so that "
    "nothing is written into a transaction that has ended.",
    update=Update.CLUSTER_WIDE,
)
