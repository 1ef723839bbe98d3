"""What a listener shows and asks for: its certificate, and the context that speaks with it.

Owns the one way from settings to both, for a start and for a change while a broker runs: whatever is read here can be
served. Must not know listeners.
"""

import ssl
from dataclasses import dataclass

from lamina.settings.ssl_stores import SslSettings
from lamina.tls.certificates import CertificateFacts, facts_of
from lamina.tls.contexts import server_context
from lamina.tls.stores import StoreError, read_key_store, read_trust_store


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    settings: SslSettings
    context: ssl.SSLContext
    facts: CertificateFacts


def load_server_identity(settings: SslSettings, now_ms: int) -> ServerIdentity:
    """Raises :class:`StoreError`."""
    if settings.key_store is None:
        raise StoreError("there is no keystore")
    key_store = read_key_store(settings.key_store)
    facts = facts_of(key_store.certificate)
    facts.check_time(now_ms)
    trusted = () if settings.trust_store is None else read_trust_store(settings.trust_store)
    return ServerIdentity(settings, server_context(settings, key_store, trusted), facts)
