"""How a broker connects to the others of its cluster: as the listener that brokers use demands, and never with less.

Owns the way from settings to connectors: the listener's own certificate and authorities are those that this broker
shows and trusts as a client. Must not know who is asked for what.
"""

from collections.abc import Callable
from secrets import token_urlsafe

from lamina.peer.connector import Connector
from lamina.peer.security import connectors
from lamina.peer.security_properties import (
    Login,
    SecurityProperties,
    SecurityPropertyError,
    SecurityProtocol,
    TlsProperties,
)
from lamina.settings.inter_broker_login import inter_broker_login
from lamina.settings.listeners import broker_listener
from lamina.settings.ssl_stores import listener_ssl
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError


def broker_connectors(settings: BrokerSettings) -> Callable[[str], Connector]:
    """Makes one for the client id that a lane goes by. Raises :class:`StartError` for what cannot be read."""
    listener = broker_listener(settings)
    assert listener is not None, "the settings make this broker a member"
    ssl, login = listener_ssl(settings, listener), inter_broker_login(settings)
    properties = SecurityProperties(
        SecurityProtocol(listener.protocol),
        None if ssl is None else TlsProperties(ssl),
        None if login is None else Login(login.mechanism, login.user, login.password),
    )
    try:
        return connectors(properties, token_urlsafe)
    except SecurityPropertyError as error:
        raise StartError(f"listener {listener.name}: {error}") from None
