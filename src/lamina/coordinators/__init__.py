"""The state machines behind consumer groups and transactions: pure, with their durable state in a log.

Every machine has one shape: a request and the time go in, a :class:`~lamina.coordinators.decision.Decision` comes
out, with the records to append and the effects to carry out. Durable state changes only when such records are
replayed, live or at loading, so that both are the same code. What is not durable (who waits, timers) is kept apart
and made again after loading. No clock, no randomness, no await in here.
"""
