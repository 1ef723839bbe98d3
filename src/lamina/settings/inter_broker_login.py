"""How a broker logs in to others, and whom it takes for one of them, read from its settings.

Owns which mechanism it uses, where its name and password are, and the refusal of what other brokers would not take; and
who is a broker where no access rules say it. The password is in no ``repr``. Must not connect.
"""

from dataclasses import dataclass, field

from lamina.security.sasl import PLAIN
from lamina.security.scram_credential import MECHANISMS as SCRAM_MECHANISMS
from lamina.settings.authorization import AUTHORIZER_CLASS_NAME, SUPER_USERS, principals
from lamina.settings.definition import SettingError
from lamina.settings.listeners import broker_listener
from lamina.settings.sasl import SASL_ENABLED_MECHANISMS, SASL_JAAS_CONFIG, SASL_MECHANISM_INTER_BROKER_PROTOCOL
from lamina.settings.sasl_listeners import sasl_listener
from lamina.settings.ssl import SSL_CLIENT_AUTH
from lamina.settings.ssl_stores import listener_ssl
from lamina.settings.values import BrokerSettings

_WITH_PASSWORD = (PLAIN, *SCRAM_MECHANISMS)


@dataclass(frozen=True, slots=True)
class InterBrokerLogin:
    mechanism: str
    user: str
    password: str = field(repr=False)


def inter_broker_login(settings: BrokerSettings) -> InterBrokerLogin | None:
    """``None`` where brokers do not log in to each other. Raises :class:`SettingError` where they could not."""
    listener = broker_listener(settings)
    served = None if listener is None else sasl_listener(settings, listener)
    if listener is None or served is None:
        return None
    setting = SASL_MECHANISM_INTER_BROKER_PROTOCOL
    mechanism = settings.get(setting)
    if mechanism is None:
        raise SettingError(f"listener {listener.name}: brokers use it, and need {setting.name} to log in to each other")
    if mechanism not in _WITH_PASSWORD:
        raise SettingError(
            f"{setting.name} = {setting.shown(mechanism)}: brokers log in to each other by {', '.join(_WITH_PASSWORD)}"
        )
    if mechanism not in served.mechanisms:
        raise SettingError(
            f"{setting.name} = {mechanism}: must be one of {SASL_ENABLED_MECHANISMS.name} of listener {listener.name}"
        )
    options = served.mechanisms[mechanism].options
    user, password = options.get("username"), options.get("password")
    entry = f"listener.name.{listener.name.lower()}.{mechanism.lower()}.{SASL_JAAS_CONFIG.name}"
    if not user or not password:
        raise SettingError(f"{entry}: needs username and password, by which this broker logs in to the others")
    if mechanism == PLAIN and served.mechanisms[mechanism].passwords.get(user) != password:
        raise SettingError(f"{entry}: no other broker would take this login: it needs user_{user}, with the password")
    return InterBrokerLogin(mechanism, user, password)


def broker_principals(settings: BrokerSettings) -> frozenset[str] | None:
    """Who is a broker on the listener between brokers; ``None`` where access rules say it, or nobody shows who he is.

    Raises :class:`SettingError` where brokers show certificates as clients do, and nothing says which are theirs.
    """
    listener, authorizer = broker_listener(settings), settings.get(AUTHORIZER_CLASS_NAME)
    if listener is None or authorizer:
        return None
    named = frozenset(principals(settings[SUPER_USERS]))
    login = inter_broker_login(settings)
    if login is not None:
        return named | {f"User:{login.user}"}
    ssl = listener_ssl(settings, listener)
    if ssl is None or ssl.client_auth != "required":
        return None
    if not named:
        raise SettingError(
            f"listener {listener.name}: {SSL_CLIENT_AUTH.name} = required: whoever has a certificate could pose as a "
            f"broker: name the principals of brokers in {SUPER_USERS.name}, such as User:CN=broker-1"
        )
    return named
