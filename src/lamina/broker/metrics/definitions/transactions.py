"""Transactions and their markers."""

from lamina.broker.metrics.metric import counter, gauge

TRANSACTIONS = gauge("lamina_transactions", "Transactional ids that this broker coordinates, by their state.", "state")
TRANSACTIONS_TIMED_OUT = counter(
    "lamina_transactions_timed_out_total", "Transactions that the broker aborted because their time ran out."
)
TRANSACTION_MARKERS = counter(
    "lamina_transaction_markers_total", "Markers that the coordinator wrote, one for each partition of a transaction."
)
TRANSACTION_MARKERS_PENDING = gauge(
    "lamina_transaction_markers_pending",
    "Partitions of ending transactions whose markers could not be written at once; "
    "one that stays has a disk that fails.",
    kafka="kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=UnknownDestinationQueueSize "
    "(the same worry)",
)
