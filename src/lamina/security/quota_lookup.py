"""Which quota holds for a client, and with whom it shares it (S60).

Owns the order in which quotas go: the one that says most about who it is for wins. Its level also says what counts
together: everything of one user, of one client id, or of one user with one client id. Made anew for each image. Must
not know what is counted.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from lamina.security.quotas import CLIENT_ID, CONNECTION_CREATION_RATE, IP, USER, QuotaEntity

_ABSENT = ""
"""For a type that an entity does not have: no name is empty, and ``None`` is the default."""


class QuotaBucket(NamedTuple):
    """Who shares a quota; a type that does not matter is ``None``."""

    key: str
    user: str | None
    client_id: str | None


class Quota(NamedTuple):
    limit: float
    bucket: QuotaBucket


class QuotaLookup:
    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._limits: dict[str, dict[tuple[str | None, str | None], float]] = {}
        """By key: limits by user and client id."""
        self._of_addresses: dict[str | None, float] = {}
        for entity, limits in quotas.items():
            named = dict(entity)
            if IP in named:
                self._set_address(named[IP], limits)
                continue
            who = (named.get(USER, _ABSENT), named.get(CLIENT_ID, _ABSENT))
            for key, limit in limits.items():
                self._limits.setdefault(key, {})[who] = limit

    def _set_address(self, name: str | None, limits: Mapping[str, float]) -> None:
        if CONNECTION_CREATION_RATE in limits:
            self._of_addresses[None if name is None else plain_address(name)] = limits[CONNECTION_CREATION_RATE]

    @property
    def keys(self) -> frozenset[str]:
        """Of quotas that users or client ids have."""
        return frozenset(self._limits)

    def find(self, key: str, user: str, client_id: str | None) -> Quota | None:
        limits = self._limits.get(key)
        if limits is None:
            return None
        for level in _levels(user, client_id or _ABSENT):
            limit = limits.get(level)
            if limit is not None:
                of_user, of_client = level
                return Quota(
                    limit,
                    QuotaBucket(
                        key,
                        None if of_user == _ABSENT else user,
                        None if of_client == _ABSENT else client_id or _ABSENT,
                    ),
                )
        return None

    @property
    def limits_addresses(self) -> bool:
        return bool(self._of_addresses)

    def connections_of(self, address: str) -> float | None:
        """How many connections a second one address may open, given as ``plain_address`` spells it."""
        return self._of_addresses.get(address, self._of_addresses.get(None))


def _levels(user: str, client_id: str) -> Iterable[tuple[str | None, str | None]]:
    """Those that say most come first. A client without an id is met by defaults alone."""
    for of_user in (user, None, _ABSENT):
        if client_id:
            yield of_user, client_id
        yield of_user, None
        if of_user != _ABSENT:
            yield of_user, _ABSENT


def plain_address(address: str) -> str:
    """One spelling for each address, IPv4 as such where it came over IPv6; text that is no address as it is."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip)
