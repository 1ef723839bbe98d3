"""Which quotas somebody asks for (S68).

Owns the matches that a filter may ask for, and what is wrong with one. Must not know messages.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from lamina.errors import InvalidRequest, UnsupportedVersion
from lamina.security.quotas import CLIENT_ID, IP, USER, QuotaEntity


class MatchType(IntEnum):
    """With the protocol's numbers."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class FilterComponent(NamedTuple):
    """What one type of an entity must be; ``name`` is for an exact match alone."""

    entity_type: str
    match_type: int
    name: str | None = None


class QuotaFilter:
    """Entities that match all components; a strict filter's entities have no other types."""

    def __init__(self, components: Sequence[FilterComponent], *, is_strict: bool) -> None:
        """Raises what is wrong with the filter."""
        self._is_strict = is_strict
        self._components: dict[str, FilterComponent] = {}
        for component in components:
            _check(component)
            if component.entity_type in self._components:
                raise InvalidRequest(f"the filter names {component.entity_type} more than once")
            self._components[component.entity_type] = component
        if IP in self._components and len(self._components) > 1:
            raise InvalidRequest(f"no entity has an {IP} together with another type")

    def matches(self, entity: QuotaEntity) -> bool:
        named = dict(entity)
        if self._is_strict and len(named) != len(self._components):
            return False
        return all(_matches(component, named) for component in self._components.values())


def _matches(component: FilterComponent, named: Mapping[str, str | None]) -> bool:
    if component.entity_type not in named:
        return False
    # The default has no name, and no exact match is for a name that is none.
    return component.match_type == MatchType.ANY or named[component.entity_type] == component.name


def _check(component: FilterComponent) -> None:
    entity_type, match_type, name = component
    if not entity_type:
        raise InvalidRequest("the filter has a component without a type")
    if entity_type not in (USER, CLIENT_ID, IP):
        raise UnsupportedVersion(f"{entity_type!r} is no type of entity: {USER}, {CLIENT_ID} and {IP} are")
    if match_type not in list(MatchType):
        raise InvalidRequest(f"there is no match of type {match_type}")
    if match_type == MatchType.EXACT and name is None:
        raise InvalidRequest(f"an exact match of {entity_type} needs a name")
    if match_type != MatchType.EXACT and name is not None:
        raise InvalidRequest(f"only an exact match of {entity_type} has a name")
