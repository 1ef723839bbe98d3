"""Everything that is wrong with a history, as Jepsen's checker for Kafka looks for it.

A pure function: the same history gives the same anomalies, in the same order.
"""

from tests.history.anomalies import Anomaly, Kind
from tests.history.durability import durability_anomalies
from tests.history.events import History
from tests.history.order import order_anomalies
from tests.history.transactions import transaction_anomalies

_ORDER = list(Kind)


def check(history: History) -> list[Anomaly]:
    """The worst first; none where all is well."""
    found = [*durability_anomalies(history), *order_anomalies(history), *transaction_anomalies(history)]
    return sorted(found, key=lambda anomaly: _ORDER.index(anomaly.kind))
