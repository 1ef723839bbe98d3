"""TLS as one listener or one client has it, read from settings.

Owns which settings need each other and which exclude each other, as Kafka has it (S4, S11). Secrets are in
no ``repr``. Must not read files, nor know how a context is made.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lamina.security.principal_rules import RuleError, parse_rules
from lamina.settings.definition import Setting, SettingError
from lamina.settings.listeners import Listener, admin_listeners, listeners
from lamina.settings.ssl import (
    PEM,
    SSL_ALLOW_DN_CHANGES,
    SSL_ALLOW_SAN_CHANGES,
    SSL_CIPHER_SUITES,
    SSL_CLIENT_AUTH,
    SSL_ENABLED_PROTOCOLS,
    SSL_ENDPOINT_IDENTIFICATION_ALGORITHM,
    SSL_KEY_PASSWORD,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_PASSWORD,
    SSL_KEYSTORE_TYPE,
    SSL_PRINCIPAL_MAPPING_RULES,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_PASSWORD,
    SSL_TRUSTSTORE_TYPE,
)
from lamina.settings.values import BrokerSettings

T = TypeVar("T")

WITH_TLS = ("SSL", "SASL_SSL", "HTTPS")
"""The protocols of listeners that speak TLS."""

ValueOf = Callable[[Setting[Any]], Any]
"""The value that holds for a listener or a client; ``None`` or empty for none."""


@dataclass(frozen=True, slots=True)
class KeyStoreSource:
    """Where a certificate and its private key are: a file, or the values themselves."""

    type: str
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    certificate_chain: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TrustStoreSource:
    """Where the certificates are that are trusted."""

    type: str
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SslSettings:
    key_store: KeyStoreSource | None
    trust_store: TrustStoreSource | None
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    client_auth: str
    principal_mapping_rules: str
    allows_dn_changes: bool
    allows_san_changes: bool
    checks_host_names: bool


def ssl_settings(value_of: ValueOf) -> SslSettings:
    """Raises :class:`SettingError` for what does not go together, whether it is used or not."""
    key_store, trust_store = _key_store(value_of), _trust_store(value_of)
    rules = value_of(SSL_PRINCIPAL_MAPPING_RULES)
    try:
        parse_rules(rules)
    except RuleError as error:
        raise SettingError(f"{SSL_PRINCIPAL_MAPPING_RULES.name}: {error}") from None
    protocols = value_of(SSL_ENABLED_PROTOCOLS)
    if not protocols:
        raise SettingError(f"{SSL_ENABLED_PROTOCOLS.name} = (empty): must name at least one version of TLS")
    return SslSettings(
        key_store,
        trust_store,
        protocols,
        value_of(SSL_CIPHER_SUITES),
        value_of(SSL_CLIENT_AUTH),
        rules,
        value_of(SSL_ALLOW_DN_CHANGES),
        value_of(SSL_ALLOW_SAN_CHANGES),
        bool(value_of(SSL_ENDPOINT_IDENTIFICATION_ALGORITHM)),
    )


def listener_ssl(settings: BrokerSettings, listener: Listener) -> SslSettings | None:
    """What one listener has; ``None`` where it speaks no TLS. Raises :class:`SettingError` where it could not serve."""
    if listener.protocol not in WITH_TLS:
        return None

    def value_of(setting: Setting[T]) -> T | None:
        own = settings.of_listener(setting, listener.name)
        if own is not None:
            return own
        if setting is SSL_CLIENT_AUTH and listener.protocol != "SSL":
            return setting.default
        return settings.get(setting)

    try:
        found = ssl_settings(value_of)
    except SettingError as error:
        raise SettingError(f"listener {listener.name}: {error}") from None
    if found.key_store is None:
        raise SettingError(
            f"listener {listener.name}: {listener.protocol} needs a certificate and its private key: "
            f"give {SSL_KEYSTORE_LOCATION.name}"
        )
    if found.client_auth != "none" and found.trust_store is None:
        raise SettingError(
            f"listener {listener.name}: {SSL_CLIENT_AUTH.name} = {found.client_auth}: "
            f"needs {SSL_TRUSTSTORE_LOCATION.name}, with the authorities that sign clients' certificates"
        )
    return found


def check_listeners_ssl(settings: BrokerSettings) -> None:
    for listener in (*listeners(settings), *admin_listeners(settings)):
        listener_ssl(settings, listener)


def _key_store(value_of: ValueOf) -> KeyStoreSource | None:
    kind: str = value_of(SSL_KEYSTORE_TYPE).upper()
    location, password = value_of(SSL_KEYSTORE_LOCATION) or None, value_of(SSL_KEYSTORE_PASSWORD) or None
    key, chain = value_of(SSL_KEYSTORE_KEY) or None, value_of(SSL_KEYSTORE_CERTIFICATE_CHAIN) or None
    _check_store(SSL_KEYSTORE_TYPE, kind, SSL_KEYSTORE_LOCATION, location, SSL_KEYSTORE_PASSWORD, password)
    for given, other, missing in (
        (SSL_KEYSTORE_KEY, SSL_KEYSTORE_CERTIFICATE_CHAIN, key is not None and chain is None),
        (SSL_KEYSTORE_CERTIFICATE_CHAIN, SSL_KEYSTORE_KEY, chain is not None and key is None),
    ):
        if missing:
            raise SettingError(f"{given.name}: needs {other.name} beside it")
    if key is not None:
        _check_inline(SSL_KEYSTORE_KEY, SSL_KEYSTORE_TYPE, kind, SSL_KEYSTORE_LOCATION, location)
    elif location is None:
        return None
    elif kind != PEM and password is None:
        raise SettingError(f"{SSL_KEYSTORE_LOCATION.name}: needs {SSL_KEYSTORE_PASSWORD.name}, unless it is PEM")
    return KeyStoreSource(kind, location, password, key, chain, value_of(SSL_KEY_PASSWORD) or None)


def _trust_store(value_of: ValueOf) -> TrustStoreSource | None:
    kind: str = value_of(SSL_TRUSTSTORE_TYPE).upper()
    location, password = value_of(SSL_TRUSTSTORE_LOCATION) or None, value_of(SSL_TRUSTSTORE_PASSWORD) or None
    certificates = value_of(SSL_TRUSTSTORE_CERTIFICATES) or None
    _check_store(SSL_TRUSTSTORE_TYPE, kind, SSL_TRUSTSTORE_LOCATION, location, SSL_TRUSTSTORE_PASSWORD, password)
    if certificates is not None:
        _check_inline(SSL_TRUSTSTORE_CERTIFICATES, SSL_TRUSTSTORE_TYPE, kind, SSL_TRUSTSTORE_LOCATION, location)
    elif location is None:
        return None
    return TrustStoreSource(kind, location, password, certificates)


def _check_store(
    type_setting: Setting[str],
    kind: str,
    location_setting: Setting[str],
    location: str | None,
    password_setting: Setting[str],
    password: str | None,
) -> None:
    if password is not None and kind == PEM:
        raise SettingError(
            f"{password_setting.name}: a store of type PEM has no password; that of its key is {SSL_KEY_PASSWORD.name}"
        )
    if password is not None and location is None:
        raise SettingError(f"{password_setting.name}: there is no {location_setting.name} that it opens")


def _check_inline(
    inline: Setting[str], type_setting: Setting[str], kind: str, location_setting: Setting[str], location: str | None
) -> None:
    if kind != PEM:
        raise SettingError(f"{inline.name}: needs {type_setting.name}=PEM")
    if location is not None:
        raise SettingError(f"{inline.name}: give it or {location_setting.name}, not both")
