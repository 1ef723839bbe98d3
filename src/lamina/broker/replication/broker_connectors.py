"""How a broker connects to the others of its cluster: as the listener that brokers use demands, and never with less.

Owns the way from settings to connectors: the listener's own certificate and authorities are those that this broker
shows and trusts as a client. When they change while it runs, connections that are made later have the new ones. Brokers
show each other certificates of one cluster, so that each has to trust its own (S6). Must not know who is asked for
what.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from secrets import token_urlsafe
from typing import Any

from lamina.clocks import Clocks
from lamina.errors import InvalidRequest
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.connector import Connector
from lamina.peer.limits import Limits
from lamina.peer.security import connectors, tls_context
from lamina.peer.security_properties import (
    Login,
    SecurityProperties,
    SecurityPropertyError,
    SecurityProtocol,
    TlsProperties,
)
from lamina.settings.definition import SettingError
from lamina.settings.inter_broker_login import inter_broker_login
from lamina.settings.listeners import broker_listener
from lamina.settings.ssl_stores import SslSettings, listener_ssl
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What was read: connectors for client ids, and by what it is seen that they are to be read again."""

    make: Callable[[str], Connector]
    ssl: SslSettings | None
    stamps: Any


class BrokerConnectors:
    def __init__(self, settings: BrokerSettings, clocks: Clocks) -> None:
        """Raises :class:`StartError` for what cannot be read."""
        self._clocks = clocks
        try:
            self._terms = self._read(settings)
        except SecurityPropertyError as error:
            raise StartError(str(error)) from error
        self._told = ""
        """What was wrong the last time, which is not said again."""

    def __call__(self, client_id: str) -> Connector:
        """One for the client id that a lane goes by."""
        return _Following(client_id, self)

    def connector(self, client_id: str) -> Connector:
        """As it is now."""
        return self._terms.make(client_id)

    async def check(self, settings: BrokerSettings) -> None:
        try:
            await self._changed(settings)
        except SecurityPropertyError as error:
            raise InvalidRequest(str(error)) from None

    async def refresh(self, settings: BrokerSettings) -> None:
        try:
            found = await self._changed(settings)
        except SecurityPropertyError as error:
            if str(error) != self._told:
                self._told = str(error)
                logger.error("%s: brokers are still shown the last certificate", error)
            return
        self._told = ""
        if found is not None:
            self._terms = found

    async def _changed(self, settings: BrokerSettings) -> _Terms | None:
        if self._terms.ssl is None:
            return None
        return await asyncio.get_running_loop().run_in_executor(None, partial(self._read_if_other, settings))

    def _read_if_other(self, settings: BrokerSettings) -> _Terms | None:
        listener = broker_listener(settings)
        assert listener is not None, "the settings make this broker a member"
        try:
            ssl = listener_ssl(settings, listener)
        except SettingError as error:
            raise SecurityPropertyError(str(error)) from None
        if ssl == self._terms.ssl and _stamps_of(ssl) == self._terms.stamps:
            return None
        return self._read(settings)

    def _read(self, settings: BrokerSettings) -> _Terms:
        """Raises :class:`SecurityPropertyError`."""
        listener = broker_listener(settings)
        assert listener is not None, "the settings make this broker a member"
        ssl, login = listener_ssl(settings, listener), inter_broker_login(settings)
        properties = SecurityProperties(
            SecurityProtocol(listener.protocol),
            None if ssl is None else TlsProperties(ssl),
            None if login is None else Login(login.mechanism, login.user, login.password),
        )
        try:
            stamps = _stamps_of(ssl)
            make = connectors(properties, token_urlsafe)
            if ssl is not None:
                self._check_trusts_itself(ssl)
        except SecurityPropertyError as error:
            raise SecurityPropertyError(f"listener {listener.name}: {error}") from None
        return _Terms(make, ssl, stamps)

    def _check_trusts_itself(self, ssl: SslSettings) -> None:
        identities, stores = import_module("lamina.tls.server_identity"), import_module("lamina.tls.stores")
        client = tls_context(TlsProperties(replace(ssl, checks_host_names=False)))
        try:
            server = identities.load_server_identity(ssl, self._clocks.now_ms()).context
            import_module("lamina.tls.trial").check_handshake(server, client)
        except stores.StoreError as error:
            raise SecurityPropertyError(str(error)) from None


class _Following:
    """A connector that is made anew for each connection."""

    def __init__(self, client_id: str, connectors: BrokerConnectors) -> None:
        self._client_id = client_id
        self._connectors = connectors

    async def connect(self, address: Address, limits: Limits) -> Connection:
        return await self._connectors.connector(self._client_id).connect(address, limits)


def _stamps_of(ssl: SslSettings | None) -> Any:
    return None if ssl is None else import_module("lamina.tls.server_identity").stamps_of(ssl)
