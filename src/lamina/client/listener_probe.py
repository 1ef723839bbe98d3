"""What a listener speaks that did not answer as it was spoken to, as one sentence for a person.

Owns the questions and the sentence. Nothing secret is said: the broker is asked for its versions and its logins, and
nobody logs in. A listener that the client would speak to without TLS is asked over TLS without looking at its
certificate: nothing is believed of what it says but how to speak to it. Must not know any command.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from lamina.errors import ErrorCode, KafkaError, SslAuthenticationFailed
from lamina.peer.addresses import Address, parse_bootstrap
from lamina.peer.call import MessageCall
from lamina.peer.connection import Connection
from lamina.peer.connector import Connector, PlainConnector
from lamina.peer.limits import Limits
from lamina.peer.security import tls_context
from lamina.peer.security_properties import (
    MECHANISMS,
    PLAIN,
    SecurityProperties,
    SecurityPropertyError,
    SecurityProtocol,
    parse_security,
)
from lamina.peer.tls import TlsConnector
from lamina.wire.api_keys import SASL_HANDSHAKE

_LIMITS = Limits(connect_timeout_ms=1000, request_timeout_ms=1000, max_response_bytes=64 * 1024)
_SECONDS = 2.0
"""For one way to speak to one address."""
_REFUSAL_SECONDS = 0.2
"""How long a broker with TLS 1.3 may take to refuse a certificate, once the handshake is over for the client (S17)."""
_MOST_ADDRESSES = 3
_CLIENT_ID = "lamina"
_GSSAPI = "GSSAPI"


@dataclass(frozen=True, slots=True)
class Listener:
    """How a listener wants to be spoken to."""

    address: Address
    has_tls: bool
    mechanisms: tuple[str, ...] = ()
    """Of its logins; empty where it has none."""
    wants_certificate: bool = False

    @property
    def protocol(self) -> SecurityProtocol:
        return SecurityProtocol(("SASL_" if self.mechanisms else "") + ("SSL" if self.has_tls else "PLAINTEXT"))


def why_unusable(security: Mapping[str, str]) -> str | None:
    """Of properties that librdkafka does not take: what is wrong with the files that they name, in plain words."""
    try:
        used = parse_security(security)
        if used.tls is not None:
            tls_context(used.tls)
    except SecurityPropertyError as error:
        return str(error)
    return None


def why_not_as_spoken(bootstrap_servers: str, security: Mapping[str, str]) -> str | None:
    """``None`` where nothing answers, or the client speaks as it should."""
    try:
        used = parse_security(security)
        addresses = parse_bootstrap(bootstrap_servers)
        context = None if used.tls is None else tls_context(used.tls)
    except (SecurityPropertyError, ValueError):
        return None

    async def run() -> str | None:
        for address in addresses[:_MOST_ADDRESSES]:
            if (reason := await _reason(address, used, context)) is not None:
                return reason
        return None

    return asyncio.run(run())


async def _reason(address: Address, used: SecurityProperties, context: ssl.SSLContext | None) -> str | None:
    mechanism = PLAIN if used.login is None else used.login.mechanism
    as_spoken = _Noting(PlainConnector(_CLIENT_ID) if context is None else TlsConnector(_CLIENT_ID, context))
    has_tls = context is not None
    try:
        return _advice(
            Listener(address, has_tls, await _mechanisms(as_spoken, address, mechanism, has_tls=has_tls)), used
        )
    except ConnectionRefusedError:
        return None
    except (KafkaError, OSError) as error:
        is_of_tls = isinstance(error, SslAuthenticationFailed) or (has_tls and as_spoken.has_connected)
        # Believed unless the listener answers in the other way.
        reason = str(error) if is_of_tls and isinstance(error, KafkaError) else None
    try:
        if not has_tls:
            return _advice(await _listener_with_tls(address, mechanism), used)
        plain = PlainConnector(_CLIENT_ID)
        return _advice(Listener(address, False, await _mechanisms(plain, address, mechanism, has_tls=False)), used)
    except (KafkaError, OSError):
        return reason


async def _listener_with_tls(address: Address, mechanism: str) -> Listener:
    """As a client sees it that looks at no certificate and has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connector = _Noting(TlsConnector(_CLIENT_ID, context))
    try:
        return Listener(address, True, await _mechanisms(connector, address, mechanism, has_tls=True))
    except (KafkaError, OSError):
        # TLS 1.3 has finished its handshake when a broker finds that the client has no certificate (S17).
        if connector.has_connected:
            return Listener(address, True, wants_certificate=True)
        raise


class _Noting:
    """Notes whether a connection was made."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.has_connected = False

    async def connect(self, address: Address, limits: Limits) -> Connection:
        connection = await self._connector.connect(address, limits)
        self.has_connected = True
        return connection


async def _mechanisms(connector: Connector, address: Address, mechanism: str, *, has_tls: bool) -> tuple[str, ...]:
    """By which clients log in; none where they need not. Raises `KafkaError` or OSError."""
    async with asyncio.timeout(_SECONDS):
        connection = await connector.connect(address, _LIMITS)
        try:
            if has_tls:
                # A refusal that crosses with a request would be lost with the connection.
                await asyncio.sleep(_REFUSAL_SECONDS)
            await connection.negotiate()
            response = await connection.request(MessageCall(SASL_HANDSHAKE, range(1, 2), mechanism=mechanism))
        finally:
            connection.close()
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return ()
    return tuple(one for one in response.mechanisms if one in (*MECHANISMS, _GSSAPI))


def _advice(found: Listener, used: SecurityProperties) -> str | None:
    what = ["speaks TLS"] if found.has_tls else []
    wanted = []
    if found.wants_certificate:
        what.append("wants a certificate")
    if found.mechanisms:
        what.append(f"wants a login by {' or '.join(found.mechanisms)}")
    if found.protocol != used.protocol:
        wanted.append(f"security.protocol={found.protocol}")
    if found.has_tls and used.tls is None:
        wanted.append("ssl.truststore.location")
    if found.wants_certificate:
        wanted.append("ssl.keystore.location")
    if found.mechanisms and used.login is None:
        wanted += ["sasl.mechanism", "sasl.jaas.config"]
    elif found.mechanisms and used.login is not None and used.login.mechanism not in found.mechanisms:
        wanted.append("sasl.mechanism")
    if not wanted:
        return None
    *others, last = wanted
    names = f"{', '.join(others)} and {last}" if others else last
    return f"{found.address} {' and '.join(what) or 'has neither TLS nor logins'}; set {names} in --command-config"
