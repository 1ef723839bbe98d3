"""The index against a slow model: every rule looked at, as S51 to S53 say it."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.security.access_index import CLUSTER_NAME, AccessIndex
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType
from tests.examples import examples

Acls = Mapping[ResourcePattern, frozenset[AccessRule]]
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def about(principal: str, host: str, rule: AccessRule, operations: Iterable[Operation]) -> bool:
    return (
        rule.principal in (principal, "User:*")
        and rule.host in (host, "*")
        and rule.operation in (*operations, Operation.ALL)
    )


def covers(pattern: ResourcePattern, type_: ResourceType, name: str) -> bool:
    if pattern.type != type_:
        return False
    if pattern.pattern is PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in (name, "*")


def model_allows(
    acls: Acls, everyone: bool, principal: str, host: str, operation: Operation, type_: ResourceType, name: str
) -> bool:
    rules = [rule for pattern, some in acls.items() if covers(pattern, type_, name) for rule in some]
    if not rules:
        return everyone
    if any(rule.permission is DENY and about(principal, host, rule, [operation]) for rule in rules):
        return False
    implying = [operation, *IMPLIED.get(operation, ())]
    return any(rule.permission is ALLOW and about(principal, host, rule, implying) for rule in rules)


def model_allows_on_any(
    acls: Acls, everyone: bool, principal: str, host: str, operation: Operation, type_: ResourceType
) -> bool:
    if model_allows(acls, everyone, principal, host, operation, type_, "hardcode"):
        return True
    mine = [
        (pattern, rule.permission)
        for pattern, rules in acls.items()
        for rule in rules
        if pattern.type == type_ and about(principal, host, rule, [operation])
    ]
    allowed = [pattern for pattern, permission in mine if permission is ALLOW]
    denied = [pattern for pattern, permission in mine if permission is DENY]
    if any(pattern.pattern is LITERAL and pattern.name == "*" for pattern in denied):
        return False
    if any(pattern.pattern is LITERAL and pattern.name == "*" for pattern in allowed):
        return True
    return any(
        not (pattern.pattern is LITERAL and pattern in denied)
        and not any(shut.pattern is PREFIXED and pattern.name.startswith(shut.name) for shut in denied)
        for pattern in allowed
    )


names = st.sampled_from(["a", "ab", "abc", "abcd", "b", "ba", "*", "*x", "hardcode", "hard"])
patterns = st.builds(
    ResourcePattern, st.sampled_from([TOPIC, GROUP]), names, st.sampled_from([LITERAL, LITERAL, PREFIXED, PREFIXED])
)
principals = st.sampled_from(["User:alice", "User:bob", "User:*"])
hosts = st.sampled_from(["*", "10.0.0.1", "10.0.0.2"])
operations = st.sampled_from(list(Operation)[1:])
rules = st.builds(AccessRule, principals, hosts, operations, st.sampled_from([ALLOW, ALLOW, DENY]))
some_acls = st.dictionaries(patterns, st.frozensets(rules, max_size=3), max_size=8)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(some_acls, max_size=3), st.booleans())
def test_the_index_decides_as_if_every_rule_were_looked_at(changes: list[Acls], everyone: bool) -> None:
    index = AccessIndex(allows_everyone_without_acl=everyone)
    acls: dict[ResourcePattern, frozenset[AccessRule]] = {}
    for changed in changes:
        index.replace(changed)
        acls = {pattern: some for pattern, some in {**acls, **changed}.items() if some}
    for principal in ("User:alice", "User:eve"):
        for host in ("10.0.0.1", "10.0.0.3"):
            for operation in (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.CREATE):
                for name in ("a", "abc", "abx", "b", "*", "zz"):
                    expected = model_allows(acls, everyone, principal, host, operation, TOPIC, name)
                    assert index.allows(principal, host, operation, TOPIC, name) == expected, (operation, name)
                anywhere = model_allows_on_any(acls, everyone, principal, host, operation, TOPIC)
                assert index.allows_on_any(principal, host, operation, TOPIC) == anywhere, operation


def index_of(*acls: tuple[str, PatternType, AccessRule], everyone: bool = False) -> AccessIndex:
    index = AccessIndex(["User:root"], allows_everyone_without_acl=everyone)
    patterns: dict[ResourcePattern, frozenset[AccessRule]] = {}
    for name, kind, rule in acls:
        pattern = ResourcePattern(TOPIC, name, kind)
        patterns[pattern] = patterns.get(pattern, frozenset()) | {rule}
    index.replace(patterns)
    return index


def rule(operation: Operation, permission: Permission = ALLOW, principal: str = "User:alice") -> AccessRule:
    return AccessRule(principal, "*", operation, permission)


def allowed(index: AccessIndex, name: str, principal: str = "User:alice") -> set[Operation]:
    return {one for one in list(Operation)[2:] if index.allows(principal, "10.0.0.1", one, TOPIC, name)}


def test_a_super_user_is_allowed_what_is_denied_to_all_s51() -> None:
    index = index_of(("t", LITERAL, rule(Operation.ALL, DENY, "User:*")))
    assert allowed(index, "t") == set()
    assert allowed(index, "t", "User:root") == set(list(Operation)[2:])
    assert index.is_super_user("User:root")


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_what_is_allowed_implies_describing_s52(operation: Operation) -> None:
    assert allowed(index_of(("t", LITERAL, rule(operation))), "t") == {operation, Operation.DESCRIBE}


def test_altering_configs_implies_describing_them_and_creating_nothing_s52() -> None:
    configs = {Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS}
    assert allowed(index_of(("t", LITERAL, rule(Operation.ALTER_CONFIGS))), "t") == configs
    assert allowed(index_of(("t", LITERAL, rule(Operation.CREATE))), "t") == {Operation.CREATE}


def test_a_denial_implies_nothing_s52() -> None:
    index = index_of(("t", LITERAL, rule(Operation.READ)), ("t", LITERAL, rule(Operation.READ, DENY)))
    assert allowed(index, "t") == {Operation.DESCRIBE}


def test_a_prefix_that_is_a_star_is_a_plain_star_s52() -> None:
    index = index_of(("*", PREFIXED, rule(Operation.CREATE)))
    assert allowed(index, "t") == set()
    assert allowed(index, "*t") == {Operation.CREATE}


def test_without_any_rule_everybody_may_if_that_is_set_s51() -> None:
    everything = set(list(Operation)[2:]) - {Operation.CLUSTER_ACTION}
    index = index_of(("orders", LITERAL, rule(Operation.CREATE)), everyone=True)
    assert allowed(index, "other", "User:eve") == everything
    assert allowed(index, "orders", "User:eve") == set(), "a rule about it is there"
    index.replace({ResourcePattern(TOPIC, "orders", LITERAL): frozenset()})
    assert allowed(index, "orders", "User:eve") == everything


def test_nobody_is_taken_for_a_broker_because_there_is_no_rule() -> None:
    """Other than in Kafka (S51): who has CLUSTER_ACTION speaks for any user (S49)."""
    index = AccessIndex(["User:root"], allows_everyone_without_acl=True)

    def may_act(principal: str) -> bool:
        return index.allows(principal, "10.0.0.1", Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)

    assert index.allows("User:eve", "10.0.0.1", Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    assert not may_act("User:eve")
    assert may_act("User:root")
    pattern = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, LITERAL)
    index.replace({pattern: frozenset({rule(Operation.CLUSTER_ACTION, principal="User:broker")})})
    assert may_act("User:broker")
    assert not may_act("User:eve")


def test_prefixes_that_begin_with_each_other_all_count() -> None:
    index = index_of(
        ("a", PREFIXED, rule(Operation.CREATE)),
        ("ab", PREFIXED, rule(Operation.READ, DENY, "User:bob")),
        ("abc", PREFIXED, rule(Operation.READ)),
        ("abd", PREFIXED, rule(Operation.WRITE)),
    )
    assert allowed(index, "abcx") == {Operation.CREATE, Operation.READ, Operation.DESCRIBE}
    assert allowed(index, "abe") == {Operation.CREATE}
    assert allowed(index, "b") == set()
