"""TLS contexts: what ``ssl`` needs to speak TLS as settings say.

Owns versions, cipher suites, whose certificates are asked for and trusted. Keys reach OpenSSL through memory alone
(S14). There are no session tickets of TLS 1.3, and those of 1.2 are good for one context: a truststore that has changed
comes with another one, so that no resumed session passes by it. Must not know sockets.
"""

import os
import ssl
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from cryptography import x509

from lamina.settings.ssl import SSL_CIPHER_SUITES, TLS_1_2, TLS_1_3
from lamina.settings.ssl_stores import SslSettings
from lamina.tls.cipher_suites import OF_TLS_1_3, openssl_name
from lamina.tls.stores import KeyStore, StoreError, encode_certificates

_VERSIONS = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
_VERIFICATION = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def server_context(settings: SslSettings, key_store: KeyStore, trusted: Iterable[x509.Certificate]) -> ssl.SSLContext:
    """For a listener. Raises :class:`StoreError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit(context, settings)
    context.num_tickets = 0
    _load_key_store(context, key_store)
    context.verify_mode = _VERIFICATION[settings.client_auth]
    if settings.client_auth != "none":
        context.load_verify_locations(cadata=encode_certificates(trusted))
    return context


def client_context(
    settings: SslSettings, key_store: KeyStore | None, trusted: Iterable[x509.Certificate] | None
) -> ssl.SSLContext:
    """For whoever connects; ``None`` trusts whom the system trusts. Raises :class:`StoreError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit(context, settings)
    context.check_hostname = settings.checks_host_names
    if key_store is not None:
        _load_key_store(context, key_store)
    if trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.load_verify_locations(cadata=encode_certificates(trusted))
    return context


def _limit(context: ssl.SSLContext, settings: SslSettings) -> None:
    """Versions, cipher suites, and trust in all that a truststore holds, as in Java: an authority in the middle too.

    A client that closes without a word does no harm: frames tell their size.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.options |= ssl.OP_NO_RENEGOTIATION | getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    protocols = set(settings.protocols)
    if settings.cipher_suites:
        of_tls_1_3 = OF_TLS_1_3 & set(settings.cipher_suites)
        if TLS_1_3 in protocols and of_tls_1_3 not in (frozenset(), OF_TLS_1_3):
            missing = ", ".join(sorted(OF_TLS_1_3 - of_tls_1_3))
            raise StoreError(
                f"{SSL_CIPHER_SUITES.name}: Python cannot choose among TLS 1.3's: name {missing} too, or none of them"
            )
        of_tls_1_2 = [name for name in settings.cipher_suites if name not in OF_TLS_1_3]
        if not of_tls_1_3:
            protocols.discard(TLS_1_3)
        if of_tls_1_2:
            _choose(context, of_tls_1_2)
        else:
            protocols.discard(TLS_1_2)
        if not protocols:
            raise StoreError(f"{SSL_CIPHER_SUITES.name}: none of them is one of ssl.enabled.protocols")
    versions = sorted(_VERSIONS[name] for name in protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _choose(context: ssl.SSLContext, names: list[str]) -> None:
    chosen = []
    for name in names:
        translated = openssl_name(name)
        try:
            context.set_ciphers(translated or "")
        except ssl.SSLError:
            raise StoreError(f"{SSL_CIPHER_SUITES.name} = {name[:80]!r}: OpenSSL has no such cipher suite") from None
        chosen.append(translated or "")
    context.set_ciphers(":".join(chosen))


def _load_key_store(context: ssl.SSLContext, key_store: KeyStore) -> None:
    with _as_file(key_store.key + encode_certificates(key_store.chain)) as path:
        try:
            context.load_cert_chain(path, password=_no_password)
        except ssl.SSLError as error:
            raise StoreError(f"the private key and its certificate cannot be used: {error.reason}") from None


def _no_password() -> bytes:
    """Else OpenSSL would ask at the terminal."""
    return b""


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path that has these contents meanwhile: of memory where the system can, else of a file of this user's alone."""
    if hasattr(os, "memfd_create"):
        fd, path = os.memfd_create("lamina-tls"), ""
        path = f"/proc/self/fd/{fd}"
    else:
        fd, path = tempfile.mkstemp()
    try:
        os.write(fd, text.encode())
        yield path
    finally:
        os.close(fd)
        if not path.startswith("/proc/"):
            with suppress(OSError):
                os.unlink(path)
