"""Which access rules are meant by a filter, and which rules there can be at all (S54, S55).

Owns both, with Kafka's errors. Must not know any message, nor where rules are kept.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lamina.errors import InvalidRequest
from lamina.security.access_index import ANY_NAME, CLUSTER_NAME
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType


class Acl(NamedTuple):
    """One rule on one pattern: what Kafka calls a binding."""

    pattern: ResourcePattern
    rule: AccessRule


class AclFilter(NamedTuple):
    """With the protocol's numbers, which may be any; ``None`` is everything."""

    type: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        if self.type not in (ResourceType.ANY, pattern.type):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, pattern.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern != PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, ANY_NAME)

    def matches_rule(self, rule: AccessRule) -> bool:
        return (
            self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )


def matching(acls: Mapping[ResourcePattern, frozenset[AccessRule]], wanted: AclFilter) -> Iterator[Acl]:
    for pattern in acls if wanted.name is None else _candidates(wanted, wanted.name):
        if pattern in acls and wanted.matches_pattern(pattern):
            for rule in sorted(acls[pattern]):
                if wanted.matches_rule(rule):
                    yield Acl(pattern, rule)


def _candidates(wanted: AclFilter, name: str) -> Iterator[ResourcePattern]:
    """The patterns that a filter with a name can find, whatever there is: a request may have thousands of filters."""
    for type_ in list(ResourceType)[1:]:
        if wanted.type in (ResourceType.ANY, type_):
            yield ResourcePattern(type_, name, PatternType.LITERAL)
            yield ResourcePattern(type_, name, PatternType.PREFIXED)
            if wanted.pattern == PatternType.MATCH:
                if name != ANY_NAME:
                    yield ResourcePattern(type_, ANY_NAME, PatternType.LITERAL)
                for end in range(len(name) - 1, 0, -1):
                    yield ResourcePattern(type_, name[:end], PatternType.PREFIXED)


def new_acl(type_: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int) -> Acl:
    """A rule from the protocol's numbers; raises :class:`InvalidRequest` for one that cannot be."""
    if type_ not in list(ResourceType)[1:]:
        raise InvalidRequest(f"there is no type of resource {type_} that rules are about")
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"a pattern is literal or prefixed, and {pattern} is neither")
    if operation not in list(Operation)[1:]:
        raise InvalidRequest(f"there is no operation {operation} that rules are about")
    if permission not in (Permission.DENY, Permission.ALLOW):
        raise InvalidRequest(f"a rule denies or allows, and {permission} is neither")
    if not name:
        raise InvalidRequest("the name of the resource is empty")
    if type_ == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequest(f"the only resource of type CLUSTER is {CLUSTER_NAME}")
    if ":" not in principal or not all(principal.split(":", 1)):
        raise InvalidRequest("a principal has the form Type:name, such as User:alice")
    return Acl(
        ResourcePattern(ResourceType(type_), name, PatternType(pattern)),
        AccessRule(principal, host, Operation(operation), Permission(permission)),
    )
