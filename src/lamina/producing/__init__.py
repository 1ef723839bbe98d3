"""Writing rows to topics, once each, on an event loop.

- `outbox`: the batches of one partition that are not acknowledged yet, in the order of their sequences. Pure.
- `producer`: sends the batches of many partitions, idempotently or in a transaction.
- `decisions`: what is known of a query's batches, and what follows from it. Pure. `decision_topic`: where it is kept.
- `transactions`: transactions that others left open: looked up, ended, and their ids given new epochs.
- `attempting`: in which transaction one attempt at a task writes, so that no two share one.
- `committing`: one batch of a query becomes visible, once, whatever was tried before.

Must not know Spark, nor rows: batches come in ready (`records.columns` makes them).
"""
