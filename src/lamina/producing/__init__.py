"""Writing rows to topics, once each, on an event loop.

- `outbox`: the batches of one partition that are not acknowledged yet, in the order of their sequences. Pure.
- `producer`: sends the batches of many partitions, idempotently or in a transaction.
- `decisions`: what is known of a query's batches, and what follows from it. Pure. `decision_topic`: where it is kept.
- `transactions`: transactions that others left open: looked up, ended, and their ids given new epochs.
- `attempting`: in which transaction one attempt at a task writes, so that no two share one.
- `committing`: one batch of a query becomes visible, once, whatever was tried before. `query_ledger`: how brokers are
  asked for all this.
- `columns`, `properties`: what may be written, and how, in Spark's and Kafka's words. Both pure. `sink_settings`: all
  that a sink is told.
- `rows`: Arrow columns become batches. `topic_sizes`: how many partitions there are to choose from.
- `session`: a cluster for callers that do not await. `topic_writing`: rows to topics on it.
- `task_writing`, `batch_ending`: what a task does, and what a driver. `explaining`: refusals in plain words.

Must not know Spark.
"""
