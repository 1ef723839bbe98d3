"""Which quota holds for a client, and with whom it shares it (S60).

Owns the order in which quotas go: the one that says most about who it is for wins. Its level also says what counts
together: everything of one user, of one client id, or of one user with one client id. Must not know what is counted.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from lamina.security.hosts import plain_address
from lamina.security.quotas import CLIENT_ID, CONNECTION_CREATION_RATE, IP, USER, QuotaEntity

_ABSENT = ""
"""For a type that an entity does not have: no name is empty, and ``None`` is the default."""
_LONGEST_KEPT = 256
"""Characters of a client id in a bucket; a client may send 32 kB, and a bucket is kept."""


class QuotaBucket(NamedTuple):
    """Who shares a quota; a type that does not matter is ``None``. A long client id is there as its digest."""

    key: str
    user: str | None
    client_id: str | None


class Quota(NamedTuple):
    limit: float
    bucket: QuotaBucket


class QuotaLookup:
    def __init__(self) -> None:
        self._limits: dict[str, dict[tuple[str | None, str | None], float]] = {}
        """By key: limits by user and client id; no key without any."""
        self._of_addresses: dict[str | None, float] = {}

    def set(self, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
        """Replace all quotas of an entity; there may be none."""
        named = dict(entity)
        if IP in named:
            self._set_address(named[IP], quotas)
            return
        who = (named.get(USER, _ABSENT), named.get(CLIENT_ID, _ABSENT))
        for key in [key for key in self._limits if key not in quotas]:
            self._limits[key].pop(who, None)
            if not self._limits[key]:
                del self._limits[key]
        for key, limit in quotas.items():
            self._limits.setdefault(key, {})[who] = limit

    def _set_address(self, name: str | None, quotas: Mapping[str, float]) -> None:
        address = None if name is None else plain_address(name) or name
        if CONNECTION_CREATION_RATE in quotas:
            self._of_addresses[address] = quotas[CONNECTION_CREATION_RATE]
        else:
            self._of_addresses.pop(address, None)

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
                        None if of_client == _ABSENT else _short(client_id or _ABSENT),
                    ),
                )
        return None

    @property
    def limits_addresses(self) -> bool:
        return bool(self._of_addresses)

    def connections_of(self, address: str) -> float | None:
        """How many connections a second one address may open, given as ``plain_address`` spells it."""
        return self._of_addresses.get(address, self._of_addresses.get(None))


def _short(client_id: str) -> str:
    if len(client_id) <= _LONGEST_KEPT:
        return client_id
    return sha256(client_id.encode("utf-8", "surrogatepass")).hexdigest()


def _levels(user: str, client_id: str) -> Iterable[tuple[str | None, str | None]]:
    """Those that say most come first. A client without an id is met by defaults alone."""
    for of_user in (user, None, _ABSENT):
        if client_id:
            yield of_user, client_id
        yield of_user, None
        if of_user != _ABSENT:
            yield of_user, _ABSENT
