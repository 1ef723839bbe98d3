"""Who may do what by a set of access rules, as Kafka decides it (S51-S53).

Owns the decision, and the index by which it is found without looking at all rules: of a type of resource the rules of
one name, those of every name (a literal ``*``), and those of prefixes. Prefixes are sorted, and each knows the longest
other one that it begins with, so those of a name are found by one bisection. Must not know requests, nor log anything.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType

ANYBODY = "User:*"
ANY_HOST = "*"
ANY_NAME = "*"
CLUSTER_NAME = "kafka-cluster"
_UNLISTED_NAME = "hardcode"
"""What Kafka asks about to learn whether somebody may do something on any resource (S53)."""

_EVERY_OPERATION = -1
IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operations that are allowed to whoever is allowed one of these (S52)."""

_Caller = tuple[str, str]
"""A principal and an address, each maybe for all."""


@dataclass(slots=True)
class _Grants:
    """The rules of one pattern, as bits of operations by whom they are about."""

    denied: dict[_Caller, int] = field(default_factory=dict)
    allowed: dict[_Caller, int] = field(default_factory=dict)
    """With what is implied (S52)."""
    allowed_literally: dict[_Caller, int] = field(default_factory=dict)
    """Without that."""


class _Typed:
    """The rules about one type of resource."""

    __slots__ = ("literal", "parents", "prefixed", "sorted_prefixes")

    def __init__(self) -> None:
        self.literal: dict[str, _Grants] = {}
        self.prefixed: dict[str, _Grants] = {}
        self.sorted_prefixes: list[str] = []
        self.parents: dict[str, str | None] = {}
        """Of each prefix the longest other one that it begins with."""

    def index_prefixes(self) -> None:
        self.sorted_prefixes = sorted(self.prefixed)
        self.parents = {}
        open_prefixes: list[str] = []
        for prefix in self.sorted_prefixes:
            while open_prefixes and not prefix.startswith(open_prefixes[-1]):
                open_prefixes.pop()
            self.parents[prefix] = open_prefixes[-1] if open_prefixes else None
            open_prefixes.append(prefix)

    def covering(self, name: str) -> list[_Grants]:
        """Of each pattern that the name matches."""
        found = []
        if (grants := self.literal.get(name)) is not None:
            found.append(grants)
        if (grants := self.literal.get(ANY_NAME)) is not None and name != ANY_NAME:
            found.append(grants)
        found.extend(self.prefixed[prefix] for prefix in self.prefixes_of(name))
        return found

    def prefixes_of(self, name: str) -> Iterator[str]:
        """The longest first."""
        if self.sorted_prefixes and (at := bisect_right(self.sorted_prefixes, name)):
            # Every prefix of the name is the entry before it, or one that this entry begins with.
            prefix: str | None = self.sorted_prefixes[at - 1]
            while prefix is not None:
                if name.startswith(prefix):
                    yield prefix
                prefix = self.parents[prefix]


class AccessIndex:
    """Changed pattern by pattern, as the metadata changes."""

    def __init__(self, super_users: Iterable[str] = (), *, allows_everyone_without_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allows_everyone_without_acl = allows_everyone_without_acl
        self._typed = {type_: _Typed() for type_ in ResourceType}

    def replace(self, changed: Mapping[ResourcePattern, frozenset[AccessRule]]) -> None:
        """The rules that these patterns have now; a pattern without rules is not there any more."""
        reindexed = set()
        for pattern, rules in changed.items():
            typed = self._typed[pattern.type]
            is_prefixed = pattern.pattern is PatternType.PREFIXED
            grants = typed.prefixed if is_prefixed else typed.literal
            if is_prefixed and (pattern.name in grants) != bool(rules):
                reindexed.add(pattern.type)
            if rules:
                grants[pattern.name] = _granted(rules)
            else:
                grants.pop(pattern.name, None)
        for type_ in reindexed:
            self._typed[type_].index_prefixes()

    def is_super_user(self, principal: str) -> bool:
        return principal in self._super_users

    def patterns_about(self, type_: ResourceType, name: str) -> list[ResourcePattern]:
        """Those whose rules decide about that resource; some of literal names may have none."""
        found = [ResourcePattern(type_, one, PatternType.LITERAL) for one in (name, ANY_NAME)]
        return found + [
            ResourcePattern(type_, prefix, PatternType.PREFIXED) for prefix in self._typed[type_].prefixes_of(name)
        ]

    def allows(self, principal: str, host: str, operation: Operation, type_: ResourceType, name: str) -> bool:
        if principal in self._super_users:
            return True
        covering = self._typed[type_].covering(name)
        if not covering:
            # Unlike Kafka: whoever may do this is taken for a broker, and no missing rule makes anybody one.
            return self._allows_everyone_without_acl and operation is not Operation.CLUSTER_ACTION
        callers = _callers(principal, host)
        bit = 1 << operation
        is_allowed = False
        for grants in covering:
            denied, allowed = grants.denied, grants.allowed
            for caller in callers:
                if denied and denied.get(caller, 0) & bit:
                    return False
                if not is_allowed and allowed.get(caller, 0) & bit:
                    is_allowed = True
        return is_allowed

    def allows_on_any(self, principal: str, host: str, operation: Operation, type_: ResourceType) -> bool:
        """Whether there can be a resource of this type on which that is allowed, as Kafka tells it (S53)."""
        if self.allows(principal, host, operation, type_, _UNLISTED_NAME):
            return True
        typed, callers, bit = self._typed[type_], _callers(principal, host), 1 << operation

        def denied(grants: _Grants | None) -> bool:
            return grants is not None and any(grants.denied.get(caller, 0) & bit for caller in callers)

        def allowed(grants: _Grants | None) -> bool:
            return grants is not None and any(grants.allowed_literally.get(caller, 0) & bit for caller in callers)

        if denied(typed.literal.get(ANY_NAME)):
            return False
        if allowed(typed.literal.get(ANY_NAME)):
            return True
        shut = {prefix for prefix, grants in typed.prefixed.items() if denied(grants)}
        is_shut = _IsShut(shut)
        for name, grants in typed.literal.items():
            if allowed(grants) and not denied(grants) and not is_shut(name):
                return True
        return any(allowed(grants) and not is_shut(prefix) for prefix, grants in typed.prefixed.items())


class _IsShut:
    """Whether a name begins with one of these."""

    def __init__(self, prefixes: set[str]) -> None:
        self._prefixes = prefixes
        self._lengths = sorted({len(prefix) for prefix in prefixes})

    def __call__(self, name: str) -> bool:
        return any(name[:length] in self._prefixes for length in self._lengths)


def _callers(principal: str, host: str) -> tuple[_Caller, ...]:
    return (principal, host), (principal, ANY_HOST), (ANYBODY, ANY_HOST), (ANYBODY, host)


def _granted(rules: Iterable[AccessRule]) -> _Grants:
    grants = _Grants()
    for principal, host, operation, permission in rules:
        caller = (principal, host)
        bits = _EVERY_OPERATION if operation is Operation.ALL else 1 << operation
        if permission is Permission.DENY:
            grants.denied[caller] = grants.denied.get(caller, 0) | bits
            continue
        grants.allowed_literally[caller] = grants.allowed_literally.get(caller, 0) | bits
        for implied, by in IMPLIED_BY.items():
            if operation in by:
                bits |= 1 << implied
        grants.allowed[caller] = grants.allowed.get(caller, 0) | bits
    return grants
