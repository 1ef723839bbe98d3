"""What a broker tells of itself when it registers: Kafka's JSON, version 5, with Lamina's own part in it.

Owns that form (zookeeper.md 6.1). A registration without Lamina's part is one of Kafka's own. What is read is believed
only in the types that are written. Must not know paths, nor who is alive.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lamina.image.image import Broker
from lamina.settings.listeners import PORT_MAX, PROTOCOLS, Listener
from lamina.store import values

_ENDPOINT = re.compile(r"([^:]+)://\[?(.*?)\]?:([0-9]{1,5})")
_ANONYMOUS = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Registration:
    endpoints: tuple[Listener, ...]
    """The addresses of every listener that others may use."""
    rack: str | None
    version: str
    """Lamina's."""
    is_clean: bool
    """Whether its last stop left nothing to recover."""
    directories: tuple[str, ...]
    """The ids of the log directories that it holds."""
    timestamp_ms: int
    features: Mapping[str, range] = field(default_factory=dict)
    """The levels of each feature that it supports."""
    is_ready: bool = False
    """Whether a controller has taken it in: the next one counts it as there before it reports."""
    registers_again: bool = True
    """Whether it does so when it was taken for dead while it lives. Before Lamina 0.1 it would stop for good."""

    def broker(self, broker_id: int, epoch: int) -> Broker:
        endpoints = {endpoint.name: endpoint for endpoint in self.endpoints}
        return Broker(broker_id, endpoints, self.rack, epoch, features=self.features)

    @property
    def addresses(self) -> str:
        return ", ".join(endpoint.address for endpoint in self.endpoints)

    def has_address_of(self, other: "Registration") -> bool:
        """Whether one address is that of both. They may differ in others: a port may be chosen anew at each start."""
        return not {one.address for one in self.endpoints}.isdisjoint(one.address for one in other.endpoints)


def dump(registration: Registration) -> bytes:
    plain = next((endpoint for endpoint in registration.endpoints if endpoint.protocol == _ANONYMOUS), None)
    return values.dump(
        {
            "version": 5,
            "host": None if plain is None else plain.host,
            "port": -1 if plain is None else plain.port,
            "jmx_port": -1,
            "timestamp": str(registration.timestamp_ms),
            "endpoints": [f"{endpoint.name}://{endpoint.address}" for endpoint in registration.endpoints],
            "listener_security_protocol_map": {each.name: each.protocol for each in registration.endpoints},
            "rack": registration.rack,
            "features": {
                name: {"min_version": levels[0], "max_version": levels[-1]}
                for name, levels in registration.features.items()
            },
            "lamina": {
                "version": registration.version,
                "clean": registration.is_clean,
                "ready": registration.is_ready,
                "registers_again": registration.registers_again,
                "directories": registration.directories,
            },
        }
    )


def load(data: bytes) -> Registration | None:
    """``None`` for one of Kafka's own; raises ``ValueError`` and the like for one that cannot be read."""
    value = values.load(data)
    own = value.get("lamina")
    if own is None:
        return None
    protocols = value["listener_security_protocol_map"]
    rack = value.get("rack")
    return Registration(
        endpoints=tuple(_endpoint(each, protocols) for each in value["endpoints"]),
        rack=None if rack is None else values.text(rack),
        version=values.text(own["version"]),
        is_clean=own["clean"] is True,
        is_ready=own.get("ready") is True,
        registers_again=own.get("registers_again") is True,
        directories=tuple(map(values.text, own["directories"])),
        timestamp_ms=int(value["timestamp"]),
        features={
            name: range(int(levels["min_version"]), int(levels["max_version"]) + 1)
            for name, levels in value["features"].items()
        },
    )


def _endpoint(text: Any, protocols: Mapping[str, Any]) -> Listener:
    match = _ENDPOINT.fullmatch(values.text(text))
    if match is None or int(match[3]) > PORT_MAX:
        raise ValueError(f"{text!r} is no endpoint")
    protocol = protocols[match[1]]
    if protocol not in PROTOCOLS:
        raise ValueError(f"{protocol!r} is no security protocol")
    return Listener(match[1], protocol, match[2], int(match[3]))
