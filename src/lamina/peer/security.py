"""From a client's security properties to the connectors that honour them.

Owns which connector a security protocol means. Certificates and keys are read once, here; a file that holds a token is
read at each login. Must not know clusters, nor who connects.
"""

import ssl
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from lamina.peer.connector import Connector, PlainConnector
from lamina.peer.sasl import Nonce, SaslConnector
from lamina.peer.security_properties import SecurityProperties, SecurityPropertyError, TlsProperties
from lamina.peer.tls import TlsConnector
from lamina.settings.ssl import PEM
from lamina.settings.ssl_stores import KeyStoreSource, TrustStoreSource


def connectors(properties: SecurityProperties, make_nonce: Nonce) -> Callable[[str], Connector]:
    """Makes a connector for a client id. Raises `SecurityPropertyError` for what cannot be read."""
    context = None if properties.tls is None else tls_context(properties.tls)

    def connector_for(client_id: str) -> Connector:
        connector = PlainConnector(client_id) if context is None else TlsConnector(client_id, context)
        login = properties.login
        return connector if login is None else SaslConnector(connector, login, make_nonce)

    return connector_for


def trusted_pem(source: TrustStoreSource) -> str:
    """The certificates of a truststore, for who reads nothing but PEM. Raises `SecurityPropertyError`."""
    stores = _tls_stores()
    try:
        return str(stores.encode_certificates(stores.read_trust_store(source)))
    except stores.StoreError as error:
        raise SecurityPropertyError(str(error)) from None


def identity_pem(source: KeyStoreSource) -> tuple[str, str]:
    """The key and the certificates of a keystore, the key not encrypted. Raises `SecurityPropertyError`."""
    stores = _tls_stores()
    try:
        store = stores.read_key_store(source)
    except stores.StoreError as error:
        raise SecurityPropertyError(str(error)) from None
    return store.key, str(stores.encode_certificates(store.chain))


def _tls_stores() -> Any:
    """It needs the package cryptography, which a plain client does without."""
    try:
        return import_module("lamina.tls.stores")
    except ImportError:
        raise SecurityPropertyError(
            "security.protocol: TLS needs the extra security: pip install 'lamina[security]'"
        ) from None


def tls_context(properties: TlsProperties) -> ssl.SSLContext:
    """Raises `SecurityPropertyError` for what cannot be read."""
    stores = _tls_stores()
    contexts = import_module("lamina.tls.contexts")
    settings = properties.ssl
    key_source = settings.key_store
    if properties.certificate_file is not None and properties.key_file is not None:
        key_source = KeyStoreSource(
            PEM,
            key=_text("ssl.key.location", properties.key_file),
            certificate_chain=_text("ssl.certificate.location", properties.certificate_file),
            key_password=properties.key_password,
        )
    try:
        context: ssl.SSLContext = contexts.client_context(
            settings,
            None if key_source is None else stores.read_key_store(key_source),
            None if settings.trust_store is None else stores.read_trust_store(settings.trust_store),
        )
        return context
    except stores.StoreError as error:
        raise SecurityPropertyError(str(error)) from None


def _text(name: str, location: str) -> str:
    try:
        return Path(location).read_text("latin-1")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise SecurityPropertyError(f"{name} = {location}: cannot be read: {reason}") from None
