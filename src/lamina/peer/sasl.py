"""Logging in: SASL on a connection that is there, and again before its session ends.

Owns the steps of SaslHandshake and SaslAuthenticate (KIP-152), PLAIN, SCRAM and OAUTHBEARER as a client speaks them,
and re-authentication (KIP-368). A broker has to show that it knows the user where the mechanism can tell (SCRAM). No
error shows a password or a token, and no other mechanism is tried than the one that was asked for. Must not know how
the connection was made.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from lamina.errors import (
    ErrorCode,
    IllegalSaslState,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    error_from_code,
)
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.connection import Connection
from lamina.peer.connector import Connector
from lamina.peer.limits import Limits
from lamina.peer.security_properties import OAUTHBEARER, PLAIN, Login
from lamina.security.scram import ScramClient, ScramError
from lamina.security.scram_credential import MECHANISMS as SCRAM_MECHANISMS
from lamina.security.scram_credential import ScramMechanism, salted_password
from lamina.wire.api_keys import SASL_AUTHENTICATE, SASL_HANDSHAKE

_HANDSHAKE_VERSIONS: Final = range(1, 2)
"""Before version 1 tokens go as bare frames, and no error comes back."""
_AUTHENTICATE_VERSIONS: Final = range(3)
_SESSION_SHARE: Final = 0.85
"""How much of a session is used before the next login; the rest is for requests that are on their way meanwhile."""
_SEPARATOR: Final = b"\x01"
_MOST_TOKEN_BYTES: Final = 256 * 1024

Nonce = Callable[[], str]
"""Printable characters without a comma that nobody can guess, others each time."""
Token = Callable[[], str]
"""Gives the token that is valid now; called on a thread."""


class Conversation(Protocol):
    """What a mechanism says, from message to message."""

    async def first(self) -> bytes: ...

    async def next(self, received: bytes) -> bytes | None:
        """``None`` once there is nothing more to say. Raises `SaslAuthenticationFailed`."""


class SaslConnector:
    """Logs in on each connection of another connector."""

    def __init__(self, connector: Connector, login: Login, make_nonce: Nonce, token: Token | None = None) -> None:
        """``token`` stands in the place of the file that the login names."""
        self._connector = connector
        self._login = login
        self._make_nonce = make_nonce
        self._token = token or partial(read_token, login.token_file)

    async def connect(self, address: Address, limits: Limits) -> Connection:
        connection = await self._connector.connect(address, limits)
        try:
            await connection.negotiate()
            session = _Session(connection, self._login.mechanism, self._conversation)
            await session.log_in()
        except BaseException:
            connection.close()
            raise
        connection.begin_session(session)
        return connection

    def _conversation(self) -> Conversation:
        login = self._login
        if login.mechanism == PLAIN:
            return _Plain(login.user, login.password)
        if login.mechanism == OAUTHBEARER:
            return _OAuthBearer(self._token)
        return _Scram(SCRAM_MECHANISMS[login.mechanism], login.user, login.password, self._make_nonce())


class _Session:
    """Who the connection is, and until when."""

    def __init__(self, connection: Connection, mechanism: str, begin: Callable[[], Conversation]) -> None:
        self._connection = connection
        self._mechanism = mechanism
        self._begin = begin
        self._due: float | None = None
        self._renewing: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        return self._renewing is None and (self._due is None or asyncio.get_running_loop().time() < self._due)

    async def renew(self) -> None:
        """Log in again; everybody who is to send something meanwhile waits for it."""
        if self._renewing is None:
            self._renewing = asyncio.create_task(self.log_in())
            self._renewing.add_done_callback(self._renewed)
        # A caller that gives up leaves the login to the others.
        await asyncio.shield(self._renewing)

    def _renewed(self, renewing: "asyncio.Task[None]") -> None:
        self._renewing = None
        if renewing.cancelled() or renewing.exception() is not None:
            self._connection.close()

    async def log_in(self) -> None:
        connection = self._connection
        handshake = await connection.send_within_login(
            MessageCall(SASL_HANDSHAKE, _HANDSHAKE_VERSIONS, mechanism=self._mechanism)
        )
        _check_handshake(connection.address, self._mechanism, handshake)
        began = asyncio.get_running_loop().time()
        conversation = self._begin()
        message: bytes | None = await conversation.first()
        lifetime = None
        while message is not None:
            response = await connection.send_within_login(
                MessageCall(SASL_AUTHENTICATE, _AUTHENTICATE_VERSIONS, auth_bytes=message)
            )
            if response.error_code:
                raise _refusal(connection.address, response)
            lifetime = getattr(response, "session_lifetime", None)
            try:
                message = await conversation.next(bytes(response.auth_bytes))
            except SaslAuthenticationFailed as error:
                raise SaslAuthenticationFailed(f"{connection.address}: {error}") from error
        self._due = began + lifetime.total_seconds() * _SESSION_SHARE if lifetime else None


def _check_handshake(address: Address, mechanism: str, response: Any) -> None:
    if not response.error_code:
        return
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise UnsupportedSaslMechanism(f"{address} has no logins by {mechanism}, only by {offered}; set sasl.mechanism")
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise IllegalSaslState(
            f"{address} has no logins; set security.protocol to PLAINTEXT or SSL, or use another port"
        )
    raise error_from_code(response.error_code, f"{address} did not begin the login")


def _refusal(address: Address, response: Any) -> KafkaError:
    reason = (response.error_message or "it gives no reason").rstrip(".")
    if response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        return SaslAuthenticationFailed(f"{address} does not accept this login: {reason}")
    return error_from_code(response.error_code, f"{address} broke the login off: {reason}")


class _Plain:
    """The name and the password as they are (RFC 4616)."""

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    async def first(self) -> bytes:
        return self._message

    async def next(self, received: bytes) -> bytes | None:
        return None


class _Scram:
    """Both sides show that they know the password, and neither tells it (RFC 5802)."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, nonce: str) -> None:
        self._digest = mechanism.digest
        self._password = password
        self._client = ScramClient(mechanism, user, nonce)
        self._is_proof_sent = False

    async def first(self) -> bytes:
        return self._client.first()

    async def next(self, received: bytes) -> bytes | None:
        try:
            if self._is_proof_sent:
                self._client.verify(received)
                return None
            challenge = self._client.challenge(received)
            salting = partial(salted_password, self._digest, self._password, challenge.salt, challenge.iterations)
            self._is_proof_sent = True
            return self._client.final(await asyncio.get_running_loop().run_in_executor(None, salting))
        except ScramError as error:
            raise SaslAuthenticationFailed(f"the login cannot go on: {error}") from error


class _OAuthBearer:
    """A token (RFC 7628). A refusal comes as JSON, and has to be answered before the broker says its error (S45)."""

    def __init__(self, token: Token) -> None:
        self._token = token

    async def first(self) -> bytes:
        token = await asyncio.get_running_loop().run_in_executor(None, self._token)
        return b"n,," + _SEPARATOR + b"auth=Bearer " + token.encode() + _SEPARATOR + _SEPARATOR

    async def next(self, received: bytes) -> bytes | None:
        return _SEPARATOR if received else None


def read_token(path: str) -> str:
    """Raises `SaslAuthenticationFailed`, which shows nothing of the file."""
    try:
        with Path(path).open("rb") as file:
            token = file.read(_MOST_TOKEN_BYTES).strip()
    except OSError as error:
        raise SaslAuthenticationFailed(f"the token's file {path} cannot be read ({error.strerror})") from None
    if not token or not token.isascii() or len(token.split()) != 1:
        raise SaslAuthenticationFailed(f"there is no token in {path}")
    return token.decode()
