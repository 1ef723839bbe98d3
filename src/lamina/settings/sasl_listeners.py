"""SASL as one listener has it, read from settings.

Owns which mechanisms there are, what each needs before it can be offered, and the refusal of those that are not built:
a listener that should have its clients log in is never opened without. Secrets are in no ``repr``. Must not know what a
mechanism says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from lamina.security.sasl import OAUTHBEARER, PLAIN
from lamina.security.scram_credential import MECHANISMS as SCRAM_MECHANISMS
from lamina.settings.definition import Setting, SettingError
from lamina.settings.listeners import WITH_SASL, Listener, listeners
from lamina.settings.network import CONNECTIONS_MAX_IDLE_MS
from lamina.settings.sasl import (
    CONNECTION_FAILED_AUTHENTICATION_DELAY_MS,
    CONNECTIONS_MAX_REAUTH_MS,
    SASL_ENABLED_MECHANISMS,
    SASL_JAAS_CONFIG,
    SASL_SERVER_CALLBACK_HANDLER_CLASS,
    SASL_SERVER_MAX_RECEIVE_SIZE,
)
from lamina.settings.values import BrokerSettings

if TYPE_CHECKING:
    from lamina.security.jaas import JaasEntry
    from lamina.settings.oauthbearer import OAuthBearer

T = TypeVar("T")

_JAVA_PACKAGE = "org.apache.kafka.common.security"
LOGIN_MODULES = {
    PLAIN: f"{_JAVA_PACKAGE}.plain.PlainLoginModule",
    **dict.fromkeys(SCRAM_MECHANISMS, f"{_JAVA_PACKAGE}.scram.ScramLoginModule"),
    OAUTHBEARER: f"{_JAVA_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}
"""The class that a JAAS entry names, by mechanism."""
_USER = "user_"


@dataclass(frozen=True, slots=True)
class SaslMechanism:
    max_reauth_ms: int
    """After so long a client has to log in again; 0 for never."""
    options: Mapping[str, str] = field(repr=False)
    """What its JAAS entry says."""
    tokens: "OAuthBearer | None" = None
    """What OAUTHBEARER takes for a valid token."""

    @property
    def passwords(self) -> Mapping[str, str]:
        """Those of PLAIN, by user."""
        return {key.removeprefix(_USER): value for key, value in self.options.items() if key.startswith(_USER)}


@dataclass(frozen=True, slots=True)
class SaslListener:
    """``mechanisms`` are in the order in which clients are told of them."""

    name: str
    mechanisms: Mapping[str, SaslMechanism]
    max_receive_bytes: int
    failed_delay_ms: int


def sasl_listener(settings: BrokerSettings, listener: Listener) -> SaslListener | None:
    """``None`` where nobody logs in. Raises :class:`SettingError` where nobody could."""
    if listener.protocol not in WITH_SASL:
        return None
    own = settings.of_listener(SASL_ENABLED_MECHANISMS, listener.name)
    names = settings[SASL_ENABLED_MECHANISMS] if own is None else own
    if not names:
        raise SettingError(
            f"listener {listener.name}: {listener.protocol} needs {SASL_ENABLED_MECHANISMS.name}, "
            f"one or more of {', '.join(LOGIN_MODULES)}"
        )
    for name in names:
        if name not in LOGIN_MODULES:
            raise SettingError(
                f"{SASL_ENABLED_MECHANISMS.name} = {SASL_ENABLED_MECHANISMS.shown(name)}: Lamina has "
                f"{', '.join(LOGIN_MODULES)}"
            )
    max_receive_bytes = settings.of_listener(SASL_SERVER_MAX_RECEIVE_SIZE, listener.name)
    return SaslListener(
        listener.name,
        {name: _mechanism(settings, listener, name) for name in names},
        settings[SASL_SERVER_MAX_RECEIVE_SIZE] if max_receive_bytes is None else max_receive_bytes,
        settings[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS],
    )


def check_listeners_sasl(settings: BrokerSettings) -> None:
    """Raise for what stops the start."""
    delay, idle = CONNECTION_FAILED_AUTHENTICATION_DELAY_MS, CONNECTIONS_MAX_IDLE_MS
    if 0 <= settings[idle] <= settings[delay]:
        raise SettingError(f"{delay.name} = {settings[delay]}: must be less than {idle.name}, {settings[idle]}")
    for listener in listeners(settings):
        sasl_listener(settings, listener)


def sasl_warnings(settings: BrokerSettings) -> Iterator[str]:
    """What an operator should know of before somebody else finds it (S87)."""
    for name in _without_signatures(settings):
        yield f"listener {name}: OAUTHBEARER takes tokens without signatures: clients can claim to be anybody"
    for name, url in _keys_in_the_clear(settings):
        yield (
            f"listener {name}: the keys of OAUTHBEARER come from {url} without TLS: whoever is on the way to them can "
            "put in his own, and then log in as anybody; use https"
        )
    if settings.is_given(SASL_JAAS_CONFIG):
        name = SASL_JAAS_CONFIG.name
        yield f"{name}: ignored, a broker reads it as listener.name.NAME.MECHANISM.{name}"
    for listener in listeners(settings):
        if listener.protocol == "SASL_PLAINTEXT" and not listener.is_for_this_machine:
            yield (
                f"listener {listener.name}: without TLS whoever sees its traffic can read it, and log in as its users; "
                "SASL_SSL hides it"
            )


def _without_signatures(settings: BrokerSettings) -> Iterator[str]:
    for name, tokens in _tokens(settings):
        if tokens.keys is None:
            yield name


def _keys_in_the_clear(settings: BrokerSettings) -> Iterator[tuple[str, str]]:
    """Listeners, each with the scheme and the host that its keys come from."""
    for name, tokens in _tokens(settings):
        parts = urlsplit("" if tokens.keys is None else tokens.keys.url)
        if parts.scheme == "http" and not _is_this_machine(parts.hostname or ""):
            yield name, f"http://{parts.hostname}"


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _tokens(settings: BrokerSettings) -> "Iterator[tuple[str, OAuthBearer]]":
    """What makes a token valid, on each listener that takes some."""
    for listener in listeners(settings):
        found = sasl_listener(settings, listener)
        tokens = None if found is None or OAUTHBEARER not in found.mechanisms else found.mechanisms[OAUTHBEARER].tokens
        if tokens is not None:
            yield listener.name, tokens


def _mechanism(settings: BrokerSettings, listener: Listener, name: str) -> SaslMechanism:
    def value_of(setting: Setting[T]) -> T | None:
        for own in (settings.of_mechanism(setting, listener.name, name), settings.of_listener(setting, listener.name)):
            if own is not None:
                return own
        return settings.get(setting)

    entry = _jaas_entry(settings, listener, name)
    if entry is None and name == PLAIN:
        raise SettingError(
            f"listener {listener.name}: {name} has no users: "
            f"give them in {_name_of(SASL_JAAS_CONFIG, listener, name)}, as "
            f'{LOGIN_MODULES[name]} required user_alice="PASSWORD";'
        )
    handler = settings.of_mechanism(SASL_SERVER_CALLBACK_HANDLER_CLASS, listener.name, name)
    if handler is not None and name != OAUTHBEARER:
        raise SettingError(
            f"{_name_of(SASL_SERVER_CALLBACK_HANDLER_CLASS, listener, name)}: Lamina runs no Java classes; it checks "
            f"{name} by itself"
        )
    options = {} if entry is None else entry.options
    max_reauth_ms = value_of(CONNECTIONS_MAX_REAUTH_MS) or 0
    if name != OAUTHBEARER:
        return SaslMechanism(max_reauth_ms, options)
    from lamina.settings.oauthbearer import oauthbearer

    try:
        return SaslMechanism(max_reauth_ms, options, oauthbearer(value_of, options))
    except SettingError as error:
        raise SettingError(f"listener {listener.name}: {error}") from None


def _jaas_entry(settings: BrokerSettings, listener: Listener, mechanism: str) -> "JaasEntry | None":
    text = settings.of_mechanism(SASL_JAAS_CONFIG, listener.name, mechanism)
    if text is None:
        return None
    # A broker where nobody logs in loads nothing of it.
    from lamina.security.jaas import JaasError, read_jaas

    name = _name_of(SASL_JAAS_CONFIG, listener, mechanism)
    try:
        entry = read_jaas(text)
    except JaasError as error:
        raise SettingError(f"{name}: {error}") from None
    if entry.login_module != LOGIN_MODULES[mechanism]:
        raise SettingError(f"{name}: must be an entry of {LOGIN_MODULES[mechanism]}; Lamina runs no Java classes")
    return entry


def _name_of(setting: Setting[str], listener: Listener, mechanism: str) -> str:
    return f"listener.name.{listener.name.lower()}.{mechanism.lower()}.{setting.name}"
