"""What may be limited, for whom, and to what: quotas of clients in Kafka's words (S60, S67).

Owns entities, the keys that each kind of entity can have, and what an alteration makes of the quotas of one. An entity
is given by pairs of a type and a name, where no name stands for the default of all others. Must not know how fast
anybody is.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from lamina.errors import InvalidRequest

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Sorted pairs of a type and a name; ``None`` for the default."""

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
_ANY_NUMBER = None

_OF_CLIENTS: Mapping[str, int | None] = {
    PRODUCER_BYTE_RATE: _LONG_MAX,
    CONSUMER_BYTE_RATE: _LONG_MAX,
    REQUEST_PERCENTAGE: _ANY_NUMBER,
    CONTROLLER_MUTATION_RATE: _ANY_NUMBER,
}
"""Keys with the largest whole number that each takes."""
_OF_ADDRESSES: Mapping[str, int | None] = {CONNECTION_CREATION_RATE: _INT_MAX}

QUOTAS_OF_CLIENTS = tuple(_OF_CLIENTS)
"""The keys that users and client ids may have."""
QUOTAS = (*_OF_CLIENTS, *_OF_ADDRESSES)
"""All keys."""


class QuotaOperation(NamedTuple):
    """One key's new value; ``None`` removes it."""

    key: str
    value: float | None


def quota_entity(pairs: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The entity of these types and names; raises what is wrong with it."""
    named: dict[str, str | None] = {}
    for entity_type, name in pairs:
        if entity_type not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"{entity_type!r} is no type of entity: {USER}, {CLIENT_ID} and {IP} are")
        if entity_type in named:
            raise InvalidRequest(f"the entity has more than one {entity_type}")
        if name == "":
            raise InvalidRequest(f"the entity's {entity_type} has an empty name; null stands for the default")
        named[entity_type] = name
    if not named:
        raise InvalidRequest("an entity has at least one type")
    if IP in named:
        if len(named) > 1:
            raise InvalidRequest(f"quotas for an {IP} are for it alone, not together with {USER} or {CLIENT_ID}")
        _check_address(named[IP])
    return tuple(sorted(named.items()))


def _check_address(name: str | None) -> None:
    if name is None:
        return
    try:
        ip_address(name)
    except ValueError:
        raise InvalidRequest(f"{name!r} is no address: quotas take IPv4 and IPv6 addresses, not names") from None


def alter_quotas(
    entity: QuotaEntity, current: Mapping[str, float], operations: Sequence[QuotaOperation]
) -> dict[str, float]:
    """What is set on the entity after the operations. To remove what is not set is no error."""
    altered = dict(current)
    keys = _OF_ADDRESSES if entity[0][0] == IP else _OF_CLIENTS
    named: set[str] = set()
    for key, value in operations:
        if key not in keys:
            raise InvalidRequest(f"{key!r} is no quota of {entity_text(entity)}: it may have {', '.join(keys)}")
        if key in named:
            raise InvalidRequest(f"{key} is given more than once")
        named.add(key)
        if value is None:
            altered.pop(key, None)
        else:
            _check_value(key, value, keys[key])
            altered[key] = value
    return altered


def _check_value(key: str, value: float, most: int | None) -> None:
    if not math.isfinite(value) or value <= 0:
        raise InvalidRequest(f"{key} must be a number above 0, not {value:g}")
    if most is not None and not value.is_integer():
        raise InvalidRequest(f"{key} must be a whole number, not {value}")
    if most is not None and value > most:
        raise InvalidRequest(f"{key} must be at most {most}, not {value:g}")


def entity_text(entity: QuotaEntity) -> str:
    """For people: ``user alice, client-id default``."""
    return ", ".join(f"{entity_type} {'default' if name is None else name}" for entity_type, name in reversed(entity))
