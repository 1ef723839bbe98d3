"""The parts of a broker in a test, as metrics read them."""

from lamina.broker.admin_parts import metric_sources
from lamina.broker.metrics.sources import MetricSources
from tests.broker.in_process import InProcessBroker
from tests.broker.in_thread import BrokerInThread
from tests.broker.no_listening import no_listening


def sources_of(broker: InProcessBroker | BrokerInThread) -> MetricSources:
    listening = broker.started.listening if isinstance(broker, BrokerInThread) else no_listening(broker)
    return metric_sources(broker.parts, listening, started_ms=1)
