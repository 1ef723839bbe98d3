"""Filters with a name find by the name what a look at every rule finds (S55)."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import InvalidRequest
from lamina.security.acl_filters import Acl, AclFilter, matching, new_acl
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType
from tests.examples import examples
from tests.security.test_access_index import some_acls

Acls = Mapping[ResourcePattern, frozenset[AccessRule]]
filters = st.builds(
    AclFilter,
    st.sampled_from([1, 2, 3, 4, 99]),
    st.sampled_from([None, "a", "abc", "*", "hardcode", "x"]),
    st.sampled_from([1, 2, 3, 4, 99]),
    st.sampled_from([None, "User:alice"]),
    st.sampled_from([None, "*"]),
    st.sampled_from([1, 2, 3, 99]),
    st.sampled_from([1, 2, 3]),
)


@settings(max_examples=examples(300), deadline=None)
@given(some_acls, filters)
def test_a_name_finds_what_a_look_at_all_finds(acls: Acls, wanted: AclFilter) -> None:
    every = [Acl(pattern, rule) for pattern, rules in acls.items() for rule in rules]
    expected = [acl for acl in every if wanted.matches_pattern(acl.pattern) and wanted.matches_rule(acl.rule)]
    found = list(matching(acls, wanted))
    assert len(found) == len(set(found))
    assert set(found) == set(expected)


def test_a_rule_is_made_from_numbers() -> None:
    acl = new_acl(2, "t", 4, "User:CN=a,O=b", "10.0.0.1", 2, 3)
    assert acl.pattern == ResourcePattern(ResourceType.TOPIC, "t", PatternType.PREFIXED)
    assert acl.rule == AccessRule("User:CN=a,O=b", "10.0.0.1", Operation.ALL, Permission.ALLOW)


@pytest.mark.parametrize("principal", ["alice", "User:", ":alice", ""])
def test_a_principal_has_a_type_and_a_name_s54(principal: str) -> None:
    with pytest.raises(InvalidRequest, match="Type:name"):
        new_acl(2, "t", 3, principal, "*", 3, 3)
