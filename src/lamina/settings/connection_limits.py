"""Who may connect, and how often, read from a broker's settings.

Owns the form of ``max.connections.per.ip.overrides`` and what must hold between the settings. Must not know
sockets, nor what a host's name stands for.
"""

from dataclasses import dataclass, field

from lamina.settings.definition import SettingError
from lamina.settings.listeners import broker_listener_name, listeners
from lamina.settings.log_config import INT_MAX
from lamina.settings.network import (
    INTER_BROKER_LISTENER_NAME,
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
)
from lamina.settings.values import BrokerSettings

DEFAULT_INTER_BROKER_LISTENER = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """What holds for one listener beside what holds for all."""

    max_connections: int = INT_MAX
    max_creation_rate: int = INT_MAX


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """``per_host`` is by address or by name, as it was given."""

    max_connections: int = INT_MAX
    max_per_ip: int = INT_MAX
    max_creation_rate: int = INT_MAX
    per_host: dict[str, int] = field(default_factory=dict)
    inter_broker_listener: str = DEFAULT_INTER_BROKER_LISTENER
    per_listener: dict[str, ListenerLimits] = field(default_factory=dict)


def connection_limits(settings: BrokerSettings) -> ConnectionLimits:
    per_host: dict[str, int] = {}
    overrides = settings[MAX_CONNECTIONS_PER_IP_OVERRIDES]
    for entry in overrides.split(",") if overrides else ():
        host, _, count = entry.rpartition(":")
        host = host.strip().removeprefix("[").removesuffix("]")
        count = count.strip()
        if not host or not (count.isascii() and count.isdecimal()) or int(count) > INT_MAX:
            name = MAX_CONNECTIONS_PER_IP_OVERRIDES.name
            raise SettingError(
                f"{name} = {entry.strip() or '(empty)'}: must have the form host:number, as in 127.0.0.1:200"
            )
        per_host[host] = int(count)
    if settings[MAX_CONNECTIONS_PER_IP] == 0 and not per_host:
        raise SettingError(
            "max.connections.per.ip = 0: no client could connect; set max.connections.per.ip.overrides for some"
        )
    return ConnectionLimits(
        settings[MAX_CONNECTIONS],
        settings[MAX_CONNECTIONS_PER_IP],
        settings[MAX_CONNECTION_CREATION_RATE],
        per_host,
        broker_listener_name(settings)
        or (settings.get(INTER_BROKER_LISTENER_NAME) or DEFAULT_INTER_BROKER_LISTENER).upper(),
        {listener.name: _of_listener(settings, listener.name) for listener in listeners(settings)},
    )


def _of_listener(settings: BrokerSettings, name: str) -> ListenerLimits:
    connections = settings.of_listener(MAX_CONNECTIONS, name)
    rate = settings.of_listener(MAX_CONNECTION_CREATION_RATE, name)
    return ListenerLimits(INT_MAX if connections is None else connections, INT_MAX if rate is None else rate)
