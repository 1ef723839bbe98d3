"""The list of metrics, in the order of docs/metrics.md.

Owns the sections. A metric is on the list by being defined in the module of one: what is not there is not exposed, and
what is there is. Must not know where values come from.
"""

from types import ModuleType

from lamina.broker.metrics.definitions import (
    broker,
    compaction,
    connections,
    groups,
    logs,
    process,
    replication,
    requests,
    topics,
    transactions,
)
from lamina.broker.metrics.metric import Metric


def _defined_in(section: ModuleType) -> tuple[Metric, ...]:
    return tuple(value for value in vars(section).values() if isinstance(value, Metric))


SECTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("The broker", _defined_in(broker)),
    ("The cluster", _defined_in(replication)),
    ("Topics", _defined_in(topics)),
    ("Requests", _defined_in(requests)),
    ("Connections", _defined_in(connections)),
    ("Groups", _defined_in(groups)),
    ("Transactions", _defined_in(transactions)),
    ("Logs", _defined_in(logs)),
    ("The machine", _defined_in(process)),
    ("Compaction", _defined_in(compaction)),
)
METRICS: tuple[Metric, ...] = tuple(metric for _, metrics in SECTIONS for metric in metrics)
