"""The listeners of a broker that opens none."""

from typing import Protocol

from lamina.broker.network.address_rates import AddressRates
from lamina.broker.network.admission import Admission
from lamina.broker.network.connection_quota import ConnectionQuota
from lamina.broker.network.listening import Listening
from lamina.broker.network.tls_listeners import TlsListeners
from lamina.broker.parts import Parts
from lamina.settings.connection_limits import connection_limits


class HasParts(Protocol):
    @property
    def parts(self) -> Parts: ...


def no_listening(broker: HasParts) -> Listening:
    parts = broker.parts
    quota = ConnectionQuota(connection_limits(parts.metadata.settings), ())
    return Listening(
        parts.loop,
        parts.clocks,
        parts.router,
        Admission(1024),
        quota,
        AddressRates(11, 1000),
        1024,
        -1,
        100,
        TlsListeners(parts.metadata.settings, parts.clocks.now_ms),
    )
