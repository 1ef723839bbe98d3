"""How a client protects its connections and who it says it is, by Kafka's client properties.

Owns the names, in Java's spelling and in librdkafka's, their defaults, and which go together. A property that touches
security and is not understood is refused, never ignored: a connection must not be less safe than it was meant to be. No
error shows a value that may be a secret. Must not know files, sockets, or who asks.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from lamina.security.jaas import JaasError, read_jaas
from lamina.security.scram_credential import MECHANISMS as SCRAM_MECHANISMS
from lamina.settings.definition import Setting, SettingError
from lamina.settings.refused import sounds_like_security
from lamina.settings.ssl import (
    PEM,
    SSL_KEY_PASSWORD,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_TYPE,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_TYPE,
)
from lamina.settings.ssl_stores import SslSettings, ssl_settings

SECURITY_PROTOCOL: Final = "security.protocol"
PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER)

_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_VERIFIES: Final = "enable.ssl.certificate.verification"
_CERTIFICATE_FILE, _KEY_FILE = "ssl.certificate.location", "ssl.key.location"
_PREFIXES: Final = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.")
_UNDERSTOOD: Final = frozenset(
    {
        *(f"ssl.truststore.{one}" for one in ("type", "location", "password", "certificates")),
        *(f"ssl.keystore.{one}" for one in ("type", "location", "password", "key", "certificate.chain")),
        *("ssl.key.password", "ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.protocol"),
        *("ssl.cipher.suites", _VERIFIES, "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location"),
        *("ssl.certificate.pem", "ssl.key.location", "ssl.key.pem"),
        *("sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config", "sasl.username", "sasl.password"),
        *("sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"),
    }
)
_JAVA_INSIDES: Final = (
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "sasl.kerberos.",
    "sasl.login.refresh.",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.",
)
"""How Java or Kerberos does what is done otherwise here, or not at all; nothing is less safe without them."""
_OF_OTHER_CONNECTIONS: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
"""How a schema registry is logged in to, which Java's clients are told in the same file."""
_MEAN_SOMETHING_ELSE: Final = frozenset(
    {"ssl.crl.location", "sasl.client.callback.handler.class", "sasl.oauthbearer.jwks.endpoint.url"}
)
"""Kafka's or librdkafka's, though they look like a misspelling of what is understood here."""
_NEARNESS: Final = 0.85
_TOKEN_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_LOGIN_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": (PLAIN,),
    "org.apache.kafka.common.security.scram.ScramLoginModule": tuple(SCRAM_MECHANISMS),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": (OAUTHBEARER,),
}
_FILE_URL: Final = "file://"


class SecurityPropertyError(ValueError):
    """A property that cannot be honoured; the sentence begins with its name."""


class SecurityProtocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_login(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class TlsProperties:
    ssl: SslSettings
    certificate_file: str | None = None
    """In PEM; this and the key's file only where they are two, as librdkafka has them."""
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Login:
    mechanism: str
    user: str = ""
    password: str = field(default="", repr=False)
    token_file: str = ""
    """Read at each login: whoever renews the token writes it there."""


@dataclass(frozen=True, slots=True)
class SecurityProperties:
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsProperties | None = None
    login: Login | None = None


def is_security(name: str) -> bool:
    return name.startswith(_PREFIXES)


def security_among(given: Mapping[str, str]) -> dict[str, str]:
    """Spaces around a value mean nothing, except in a password."""
    return {
        name: text if name.endswith("password") else text.strip() for name, text in given.items() if is_security(name)
    }


def security_of_connections(given: Mapping[str, str]) -> dict[str, str]:
    """Of all properties of a command: those that its connections to brokers go by, as `refuse_unused` has it."""
    has_tls = _protocol(given.get(SECURITY_PROTOCOL, SecurityProtocol.PLAINTEXT).strip()).has_tls
    return {
        name: text
        for name, text in given.items()
        if is_security(name) and (has_tls or _is_login(name) or name.startswith("security."))
    }


def refuse_dangerous(name: str, text: str) -> None:
    """Of a property that nobody knows: refuses it if the connection may be less safe without it."""
    dotted = name.lower().replace("_", ".")
    of_others = name.startswith(_OF_OTHER_CONNECTIONS)
    if _near(name) or is_security(dotted) or (sounds_like_security(dotted, text) and not of_others):
        raise SecurityPropertyError(f"{name} is unknown{_question(name)} Ignoring it could open the connection.")


def _near(name: str) -> str | None:
    """What is understood here and was probably meant, in whatever way a client writes it."""
    known = sorted({SECURITY_PROTOCOL, *_UNDERSTOOD})
    return next(iter(difflib.get_close_matches(name.lower()[:100], known, n=1, cutoff=_NEARNESS)), None)


def _question(name: str) -> str:
    near = _near(name)
    is_meant = near is not None and near != name and name not in _MEAN_SOMETHING_ELSE
    return f"; did you mean {near}?" if is_meant else "."


def refuse_unused(given: Mapping[str, str]) -> None:
    """Of all properties of a command: those that its connections to brokers would not use.

    Beside a protocol that is said to be without TLS those of TLS are for the admin listener.
    """
    protocol = _protocol(given.get(SECURITY_PROTOCOL, SecurityProtocol.PLAINTEXT))
    _refuse_without_meaning(
        protocol,
        (
            name
            for name in security_among(given)
            if not name.startswith("security.") and (_is_login(name) or SECURITY_PROTOCOL not in given)
        ),
    )


def parse_security(given: Mapping[str, str]) -> SecurityProperties:
    """Of all properties of a client; those that have nothing to do with security are passed over.

    A name that looks like one of security is not: whoever misspells it wants a connection that is safe.
    """
    for name, text in given.items():
        if not is_security(name):
            refuse_dangerous(name, text)
    security = security_among(given)
    protocol = _protocol(security.pop(SECURITY_PROTOCOL, SecurityProtocol.PLAINTEXT))
    _refuse_unknown(security)
    _refuse_without_meaning(protocol, security)
    return SecurityProperties(
        protocol,
        parse_tls(security) if protocol.has_tls else None,
        parse_login(security) if protocol.has_login else None,
    )


def parse_tls(given: Mapping[str, str]) -> TlsProperties:
    """Of properties that are about security."""
    if (verifies := given.get(_VERIFIES, "true").lower()) != "true":
        raise SecurityPropertyError(
            f"{_VERIFIES}: {verifies} would trust anybody; name the CA that signs the brokers' certificates "
            "(ssl.truststore.location, or ssl.ca.location)"
        )
    _refuse_unknown(name for name in given if name.startswith(_STORES))
    said = _in_javas_words(given)

    def value_of(setting: Setting[Any]) -> Any:
        return setting.parse(said[setting.name]) if setting.name in said else setting.default

    try:
        settings = ssl_settings(value_of)
    except SettingError as error:
        raise SecurityPropertyError(str(error)) from None
    files = given.get(_CERTIFICATE_FILE), given.get(_KEY_FILE)
    if files == (None, None) or settings.key_store is not None:
        return TlsProperties(settings)
    return TlsProperties(settings, *files, given.get(SSL_KEY_PASSWORD.name))


def _in_javas_words(given: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's names of what Java's clients have too, which are told which form a store has."""
    said = dict(given)
    if said.get("ssl.endpoint.identification.algorithm", "").lower() == "none":
        said["ssl.endpoint.identification.algorithm"] = ""
    certificate, key = given.get(_CERTIFICATE_FILE), given.get(_KEY_FILE)
    if (certificate is None) != (key is None):
        alone, missing = (_CERTIFICATE_FILE, _KEY_FILE) if key is None else (_KEY_FILE, _CERTIFICATE_FILE)
        raise SecurityPropertyError(f"{alone} needs {missing} beside it")
    if certificate == key and certificate is not None:
        said["ssl.keystore.both"] = certificate
    for of_librdkafka, of_java, kind in (
        ("ssl.ca.location", SSL_TRUSTSTORE_LOCATION, SSL_TRUSTSTORE_TYPE),
        ("ssl.ca.pem", SSL_TRUSTSTORE_CERTIFICATES, SSL_TRUSTSTORE_TYPE),
        ("ssl.certificate.pem", SSL_KEYSTORE_CERTIFICATE_CHAIN, SSL_KEYSTORE_TYPE),
        ("ssl.key.pem", SSL_KEYSTORE_KEY, SSL_KEYSTORE_TYPE),
        ("ssl.keystore.both", SSL_KEYSTORE_LOCATION, SSL_KEYSTORE_TYPE),
    ):
        if of_librdkafka in said:
            if of_java.name in given:
                raise SecurityPropertyError(f"{of_librdkafka} cannot be given together with {of_java.name}")
            said[of_java.name], said[kind.name] = said.pop(of_librdkafka), PEM
    return said


def parse_login(given: Mapping[str, str]) -> Login:
    name = "sasl.mechanism" if "sasl.mechanism" in given else "sasl.mechanisms"
    mechanism = given.get(name, "")
    if mechanism not in MECHANISMS:
        found = f"{name}: {mechanism} is not one of" if mechanism else "sasl.mechanism is missing: it must be one of"
        raise SecurityPropertyError(f"{found} {', '.join(MECHANISMS)}")
    options = _login_options(given, mechanism)
    if mechanism == OAUTHBEARER:
        return Login(mechanism, token_file=_token_file(given))
    user = options.get("username", given.get("sasl.username", ""))
    password = options.get("password", given.get("sasl.password", ""))
    if not user or not password:
        raise SecurityPropertyError(
            f"sasl.jaas.config: {mechanism} needs username and password (librdkafka: sasl.username and sasl.password)"
        )
    return Login(mechanism, user, password)


def _protocol(text: str) -> SecurityProtocol:
    try:
        return SecurityProtocol(text.upper())
    except ValueError:
        raise SecurityPropertyError(
            f"{SECURITY_PROTOCOL}: {text} is not one of {', '.join(SecurityProtocol)}"
        ) from None


def _is_login(name: str) -> bool:
    return name.startswith(("sasl.", "enable.sasl."))


def _refuse_without_meaning(protocol: SecurityProtocol, given: Iterable[str]) -> None:
    for name in given:
        is_login = _is_login(name)
        if (is_login and not protocol.has_login) or (not is_login and not protocol.has_tls):
            better = " or ".join(one for one in SecurityProtocol if (one.has_login if is_login else one.has_tls))
            raise SecurityPropertyError(
                f"{name} has no meaning with {SECURITY_PROTOCOL}={protocol}; set {SECURITY_PROTOCOL} to {better}"
            )


def _refuse_unknown(given: Iterable[str]) -> None:
    for name in given:
        if name not in _UNDERSTOOD and not name.startswith(_JAVA_INSIDES):
            raise SecurityPropertyError(
                f"{name} is not understood here{_question(name)} Ignoring it could open the connection."
            )


def _login_options(given: Mapping[str, str], mechanism: str) -> Mapping[str, str]:
    text = given.get("sasl.jaas.config")
    if text is None:
        return {}
    try:
        entry = read_jaas(text)
    except JaasError as error:
        raise SecurityPropertyError(f"sasl.jaas.config: {error}") from None
    if entry.login_module not in _LOGIN_MODULES:
        raise SecurityPropertyError(f"sasl.jaas.config: {entry.login_module} is not one of {', '.join(_LOGIN_MODULES)}")
    if mechanism not in _LOGIN_MODULES[entry.login_module]:
        raise SecurityPropertyError(f"sasl.jaas.config: {entry.login_module} is not for sasl.mechanism={mechanism}")
    return entry.options


def _token_file(given: Mapping[str, str]) -> str:
    handler = given.get("sasl.login.callback.handler.class", _TOKEN_HANDLER)
    if handler.rpartition(".")[2] != _TOKEN_HANDLER.rpartition(".")[2]:
        raise SecurityPropertyError("sasl.login.callback.handler.class: Lamina runs no Java classes")
    name = "sasl.oauthbearer.token.endpoint.url"
    url = given.get(name, "")
    if not url.startswith(_FILE_URL):
        raise SecurityPropertyError(
            f"{name}: OAUTHBEARER needs a file that holds the token, as file:///PATH; whoever renews it writes it there"
        )
    return url.removeprefix(_FILE_URL)
