"""What a listener shows and asks for: its certificate, and the context that speaks with it.

Owns the one way from settings to both, for a start and for a change while a broker runs: whatever is read here can be
served. Must not know listeners.
"""

import os
import ssl
from dataclasses import dataclass

from lamina.settings.ssl_stores import SslSettings
from lamina.tls.certificates import CertificateFacts, facts_of
from lamina.tls.contexts import server_context
from lamina.tls.stores import StoreError, read_key_store, read_trust_store

Stamps = tuple[tuple[int, int, int] | None, ...]
"""By which it is seen that files are others: those of the keystore and the truststore; ``None`` for what is no file."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    settings: SslSettings
    context: ssl.SSLContext
    facts: CertificateFacts
    stamps: Stamps


def stamps_of(settings: SslSettings) -> Stamps:
    return tuple(_stamp(source.location) for source in (settings.key_store, settings.trust_store) if source is not None)


def _stamp(location: str | None) -> tuple[int, int, int] | None:
    try:
        found = None if location is None else os.stat(location)
    except (OSError, ValueError):
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def load_server_identity(settings: SslSettings, now_ms: int) -> ServerIdentity:
    """Raises :class:`StoreError`."""
    if settings.key_store is None:
        raise StoreError("there is no keystore")
    # Before the files are read: what changes meanwhile is read again.
    stamps = stamps_of(settings)
    key_store = read_key_store(settings.key_store)
    facts = facts_of(key_store.certificate)
    facts.check_time(now_ms)
    trusted = () if settings.trust_store is None else read_trust_store(settings.trust_store)
    return ServerIdentity(settings, server_context(settings, key_store, trusted), facts, stamps)
