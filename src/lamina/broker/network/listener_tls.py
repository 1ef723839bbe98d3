"""TLS of one listener: what it shows, whom it lets in, and who they are.

Owns the identity that holds now, which may change while the broker runs: handshakes that begin later have the new
one. Must not know the loop.
"""

import socket
import ssl
from typing import TYPE_CHECKING

from lamina.broker.network.secure_socket import SecureSocket, new_scratch
from lamina.broker.requests.request import ANONYMOUS
from lamina.security.distinguished_names import MalformedName
from lamina.security.principal_rules import map_name, parse_rules

if TYPE_CHECKING:
    from lamina.tls.server_identity import ServerIdentity


class ListenerTls:
    def __init__(self, name: str, identity: "ServerIdentity", *, names_principals: bool = True) -> None:
        """``names_principals``: whether a certificate says who shows it; where clients log in it does not (S4)."""
        self.name = name
        self._names_principals = names_principals
        self.identity = identity
        self._rules = parse_rules(identity.settings.principal_mapping_rules)
        self._scratch = new_scratch()

    def wrap(self, accepted: socket.socket) -> SecureSocket:
        """The socket with TLS, its handshake to be done."""
        return SecureSocket(accepted, self.identity.context, self._scratch)

    def take(self, identity: "ServerIdentity") -> None:
        """Handshakes that begin from now on have it."""
        self.identity = identity

    def principal_of(self, connected: ssl.SSLObject) -> str | None:
        """Whose certificate was shown, by the rules; ``None`` where they let nobody of that name in."""
        shown = connected.getpeercert(binary_form=True) if self._names_principals else None
        if shown is None:
            return ANONYMOUS
        from lamina.tls.certificates import name_in

        try:
            mapped = map_name(self._rules, name_in(shown))
        except MalformedName:
            return None
        return None if mapped is None else f"User:{mapped}"
