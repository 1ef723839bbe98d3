"""How a login begins, by each mechanism of a listener.

Owns where each mechanism's credentials come from: PLAIN's from the settings, SCRAM's from the metadata, the keys of
OAUTHBEARER's tokens from an address. What these need is loaded by name, where a listener takes tokens. Must not know
what the mechanisms say.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.security.oauthbearer import BearerToken, OAuthBearerServer, UnknownKey
from lamina.security.plain import PlainServer
from lamina.security.sasl import PLAIN, SaslServer
from lamina.security.scram import ScramServer
from lamina.security.scram_credential import MECHANISMS as SCRAM_MECHANISMS
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.security.token_claims import check_claims, unsecured_claims
from lamina.settings.oauthbearer import KeySource, OAuthBearer
from lamina.settings.sasl_listeners import SaslListener

if TYPE_CHECKING:
    from lamina.broker.login.key_set import KeySet

INSTALL = 'OAUTHBEARER needs the package pyjwt: pip install "lamina[security]" brings it'

_NONCE_BYTES = 24


class LoginError(Exception):
    """Logins that a listener cannot offer; the message is one sentence."""


class ScramUsers:
    """SCRAM's users, as they are decided: they depend on nothing that a broker has to do first."""

    def __init__(self, metadata: Metadata, secret: bytes) -> None:
        """Users that do not exist get salts that are made from ``secret``. It belongs to the cluster and stays, so
        that these salts are the same on every broker and at all times, as those of users that exist."""
        self._metadata = metadata
        self._secret = secret

    def new_server(self, mechanism: ScramMechanism) -> ScramServer:
        return ScramServer(mechanism, partial(self._find, mechanism), self._secret, token_urlsafe(_NONCE_BYTES))

    def _find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self._metadata.decided.scram_credentials.get(user, {}).get(mechanism)


class TokenKeys:
    """The keys of all issuers of tokens whose addresses listeners have."""

    def __init__(self, threads: Threads, clocks: Clocks, loop: asyncio.AbstractEventLoop) -> None:
        self._threads = threads
        self._clocks = clocks
        self._loop = loop
        self._sets: dict[KeySource, KeySet] = {}

    def validator(self, tokens: OAuthBearer) -> Callable[[str], BearerToken]:
        """Raises :class:`LoginError` where a package is missing."""
        rules, now_ms = tokens.rules, self._clocks.now_ms
        if tokens.keys is None:
            return lambda token: check_claims(unsecured_claims(token), rules, now_ms())
        try:
            from lamina.broker.login.key_set import KeySet
            from lamina.security.signing_keys import signed_claims
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("jwt", "cryptography"):
                raise
            raise LoginError(INSTALL) from None
        found = self._sets.get(tokens.keys)
        if found is None:
            # Each its own thread: an issuer that does not answer keeps no other waiting.
            threads = self._threads.separate("keys")
            found = self._sets[tokens.keys] = KeySet(tokens.keys, threads, self._clocks, self._loop)
        key_set = found

        def validate(token: str) -> BearerToken:
            try:
                claims = signed_claims(token, key_set.keys)
            except UnknownKey:
                key_set.want_newer()
                raise
            return check_claims(claims, rules, now_ms())

        return validate

    def start(self) -> None:
        for key_set in self._sets.values():
            key_set.start()

    async def stop(self) -> None:
        for key_set in self._sets.values():
            await key_set.stop()


def new_servers(
    listener: SaslListener, scram_users: ScramUsers, token_keys: TokenKeys
) -> dict[str, Callable[[], SaslServer]]:
    """What begins a login, by the name of its mechanism. Raises :class:`LoginError`."""
    servers: dict[str, Callable[[], SaslServer]] = {}
    for name, mechanism in listener.mechanisms.items():
        if name in SCRAM_MECHANISMS:
            servers[name] = partial(scram_users.new_server, SCRAM_MECHANISMS[name])
        elif name == PLAIN:
            servers[name] = partial(PlainServer, dict(mechanism.passwords))
        elif mechanism.tokens is not None:
            servers[name] = partial(OAuthBearerServer, token_keys.validator(mechanism.tokens))
    return servers
