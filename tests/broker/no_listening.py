"""The listeners of a broker that opens none."""

from lamina.broker.network.admission import Admission
from lamina.broker.network.connection_quota import ConnectionQuota
from lamina.broker.network.listening import Listening
from lamina.settings.connection_limits import connection_limits
from tests.broker.in_process import InProcessBroker


def no_listening(broker: InProcessBroker) -> Listening:
    parts = broker.parts
    quota = ConnectionQuota(connection_limits(parts.metadata.settings), ())
    return Listening(parts.loop, parts.clocks, parts.router, Admission(1024), quota, 1024, -1)
