"""How a login begins, by each mechanism of a listener.

Owns where each mechanism's credentials come from: PLAIN's from the settings, SCRAM's from the metadata. Must not know
what the mechanisms say.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from secrets import token_urlsafe

from lamina.broker.metadata.metadata import Metadata
from lamina.security.plain import PlainServer
from lamina.security.sasl import PLAIN, SaslServer
from lamina.security.scram import MECHANISMS as SCRAM_MECHANISMS
from lamina.security.scram import ScramCredential, ScramMechanism, ScramServer
from lamina.settings.sasl_listeners import SaslListener

_NONCE_BYTES = 24


class ScramUsers:
    """SCRAM's users, as the metadata has them now."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._secret_of: Mapping[str, Mapping[ScramMechanism, ScramCredential]] | None = None
        self._secret = b""

    def new_server(self, mechanism: ScramMechanism) -> ScramServer:
        return ScramServer(mechanism, partial(self._find, mechanism), self._made_up(), token_urlsafe(_NONCE_BYTES))

    def _find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self._metadata.image.scram_credentials.get(user, {}).get(mechanism)

    def _made_up(self) -> bytes:
        """What the salts of users come from that do not exist: the same on every broker and after every start, as the
        salts of those that do, and known to nobody, for it is made of what is kept of all users' passwords."""
        users = self._metadata.image.scram_credentials
        if users is not self._secret_of:
            digest = hashlib.sha256()
            for _, credentials in sorted(users.items()):
                for _, credential in sorted(credentials.items()):
                    digest.update(credential.server_key)
            self._secret_of, self._secret = users, digest.digest()
        return self._secret


def new_servers(listener: SaslListener, scram_users: ScramUsers) -> dict[str, Callable[[], SaslServer]]:
    """What begins a login, by the name of its mechanism."""
    servers: dict[str, Callable[[], SaslServer]] = {}
    for name, mechanism in listener.mechanisms.items():
        if name in SCRAM_MECHANISMS:
            servers[name] = partial(scram_users.new_server, SCRAM_MECHANISMS[name])
        elif name == PLAIN:
            servers[name] = partial(PlainServer, dict(mechanism.passwords))
    return servers
