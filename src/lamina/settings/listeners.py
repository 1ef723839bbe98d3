"""A broker's listeners, read from its settings.

Owns the form of ``NAME://host:port``, or ``host:port`` for the admin listener, and the refusal of protocols that are
not built between brokers. What a protocol needs, ``ssl_stores`` and ``sasl_listeners`` say. Must not open anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address

from lamina.settings.definition import Setting, SettingError
from lamina.settings.network import (
    ADVERTISED_LISTENERS,
    CONTROLLER_LISTENER_NAMES,
    INTER_BROKER_LISTENER_NAME,
    LAMINA_ADMIN_ADVERTISED_LISTENERS,
    LAMINA_ADMIN_LISTENERS,
    LISTENER_SECURITY_PROTOCOL_MAP,
    LISTENERS,
    SECURITY_INTER_BROKER_PROTOCOL,
)
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper import ZOOKEEPER_CONNECT

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
WITH_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
"""The protocols of listeners whose clients log in."""
OWN_BROKER_LISTENER = "BROKERS"
"""The listener that a member of a cluster opens for brokers by itself, on a free port that it registers."""
ANY_ADDRESSES = ("0.0.0.0", "::")
PORT_MAX = 65535

_ADDRESS = r"(?:\[([0-9A-Fa-f:.%]{1,64})\]|([A-Za-z0-9._%-]{0,253})):([0-9]{1,5})"
_LISTENER = re.compile(r"([A-Za-z0-9_.-]{1,249})://" + _ADDRESS)
_ADMIN_LISTENER = re.compile(r"(?:(https?)://)?" + _ADDRESS, re.IGNORECASE)
ADMIN = "ADMIN"
"""By this name the admin listener is given settings of its own: ``listener.name.admin.ssl.keystore.location``."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A named address; ``host`` is empty for every address, ``port`` is 0 for a free one."""

    name: str
    protocol: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """What is typed to connect; this machine's name for every address."""
        host = self.host or "localhost"
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address of an admin listener, with its scheme where that is not plain HTTP."""
        return f"https://{self.address}" if self.protocol == "HTTPS" else self.address

    @property
    def is_for_this_machine(self) -> bool:
        try:
            return ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            return self.host == "localhost"


def listeners(settings: BrokerSettings) -> tuple[Listener, ...]:
    """What the broker opens; in a cluster one more, for brokers, unless the settings name the one that they use."""
    opened = tuple(_read(settings, LISTENERS))
    if not opened:
        raise SettingError("listeners: must name at least one listener that is not a controller's")
    seen: set[str] = set()
    for listener in opened:
        if listener.name in seen:
            raise SettingError(f"listeners = {listener.name}: must name each listener once")
        seen.add(listener.name)
    between_brokers = broker_listener_name(settings)
    if between_brokers == OWN_BROKER_LISTENER and OWN_BROKER_LISTENER not in seen:
        _refuse_plain_beside(opened)
        return (*opened, Listener(OWN_BROKER_LISTENER, "PLAINTEXT", opened[0].host, 0))
    if between_brokers is not None and between_brokers not in seen:
        given = INTER_BROKER_LISTENER_NAME
        if not settings.get(INTER_BROKER_LISTENER_NAME):
            given = SECURITY_INTER_BROKER_PROTOCOL
        raise SettingError(f"{given.name} = {between_brokers}: must be one of those in listeners")
    return opened


def has_sasl(settings: BrokerSettings) -> bool:
    """Whether clients log in on any listener."""
    return any(listener.protocol in WITH_SASL for listener in listeners(settings))


def _refuse_plain_beside(opened: tuple[Listener, ...]) -> None:
    """Whoever reaches a listener for brokers can pose as one: it is not to be the way around the others."""
    for listener in opened:
        if listener.protocol != "PLAINTEXT":
            raise SettingError(
                f"listeners = {listener.name}: with {listener.protocol}, brokers would have one without it: "
                f"name their listener in {INTER_BROKER_LISTENER_NAME.name}"
            )


def broker_listener_name(settings: BrokerSettings) -> str | None:
    """The listener on which brokers of a cluster speak to each other; ``None`` for a broker without a cluster."""
    if not settings.get(ZOOKEEPER_CONNECT):
        return None
    name = settings.get(INTER_BROKER_LISTENER_NAME)
    protocol = settings[SECURITY_INTER_BROKER_PROTOCOL]
    if name and settings.is_given(SECURITY_INTER_BROKER_PROTOCOL):
        raise SettingError(
            f"{SECURITY_INTER_BROKER_PROTOCOL.name} = {protocol}: "
            f"give it or {INTER_BROKER_LISTENER_NAME.name}, not both"
        )
    return (name or (OWN_BROKER_LISTENER if protocol == "PLAINTEXT" else protocol)).upper()


def broker_listener(settings: BrokerSettings) -> Listener | None:
    """The one of that name; ``None`` for a broker without a cluster."""
    name = broker_listener_name(settings)
    return next((listener for listener in listeners(settings) if listener.name == name), None)


def advertised_listeners(settings: BrokerSettings) -> tuple[Listener, ...]:
    """What clients are told: the advertised ones, else those that are opened."""
    opened = listeners(settings)
    advertised = tuple(_read(settings, ADVERTISED_LISTENERS))
    for listener in advertised:
        if listener.name not in _names(opened):
            raise SettingError(f"advertised.listeners = {listener.name}: must be one of the names in listeners")
    for listener in advertised or opened:
        if listener.host in ANY_ADDRESSES:
            where = f"advertised.listeners = {listener.name}" if advertised else f"listeners = {listener.name}"
            told = f"advertised.listeners={listener.name}://NAME:{listener.port or 'PORT'}"
            remedy = "" if advertised else f": set {told}, with a name or address of this machine that they can reach"
            raise SettingError(f"{where}: no client can connect to {listener.host}{remedy}")
    between_brokers = [
        one for one in opened if advertised and one.name == OWN_BROKER_LISTENER not in _names(advertised)
    ]
    return (*advertised, *(replace(one, host=advertised[0].host) for one in between_brokers)) or opened


def _names(some: tuple[Listener, ...]) -> set[str]:
    return {listener.name for listener in some}


def admin_listeners(settings: BrokerSettings) -> tuple[Listener, ...]:
    """Where HTTP is answered; empty when it is not."""
    found = tuple(_read_admin(settings, LAMINA_ADMIN_LISTENERS))
    if any(one.protocol == "HTTPS" for one in found) and ADMIN in _names(listeners(settings)):
        raise SettingError(f"listeners = {ADMIN}: has the name of the admin listener, whose TLS it would share")
    return found


def advertised_admin_listeners(settings: BrokerSettings) -> tuple[Listener, ...]:
    """Where tools are told to go; empty when that is where the broker listens."""
    advertised = tuple(_read_admin(settings, LAMINA_ADMIN_ADVERTISED_LISTENERS))
    for listener in advertised:
        if not listener.host or listener.host in ANY_ADDRESSES or not listener.port:
            raise SettingError(f"lamina.admin.advertised.listeners = {listener.address}: must name a host and a port")
    return advertised


def _read_admin(settings: BrokerSettings, setting: Setting[tuple[str, ...]]) -> Iterator[Listener]:
    for entry in settings[setting]:
        match = _ADMIN_LISTENER.fullmatch(entry)
        if match is None or int(match[4]) > PORT_MAX:
            raise SettingError(
                f"{setting.name} = {setting.shown(entry)}: must have the form host:port, or https://host:port, "
                "with a port up to 65535"
            )
        yield Listener(ADMIN, (match[1] or "http").upper(), match[2] or match[3], int(match[4]))


def _read(settings: BrokerSettings, setting: Setting[tuple[str, ...]]) -> Iterator[Listener]:
    controllers = {name.upper() for name in settings[CONTROLLER_LISTENER_NAMES]}
    protocols = _protocols(settings)
    for entry in settings[setting]:
        match = _LISTENER.fullmatch(entry)
        if match is None or int(match[4]) > PORT_MAX:
            raise SettingError(
                f"{setting.name} = {setting.shown(entry)}: must have the form NAME://host:port with a port up to 65535"
            )
        name = match[1].upper()
        if name in controllers:
            continue
        protocol = protocols.get(name)
        if protocol is None:
            raise SettingError(f"{setting.name} = {entry}: {name} has no protocol in listener.security.protocol.map")
        yield Listener(name, protocol, match[2] or match[3], int(match[4]))


def _protocols(settings: BrokerSettings) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for entry in settings[LISTENER_SECURITY_PROTOCOL_MAP]:
        name, _, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not name or protocol not in PROTOCOLS:
            one_of = ", ".join(PROTOCOLS)
            raise SettingError(f"listener.security.protocol.map = {entry}: must be NAME:PROTOCOL, one of {one_of}")
        protocols[name] = protocol
    return protocols
