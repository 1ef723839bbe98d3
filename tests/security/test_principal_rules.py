"""``ssl.principal.mapping.rules`` as Kafka 4.1's SslPrincipalMapper follows them (security facts S19)."""

import pytest

from lamina.security.principal_rules import RuleError, map_name, parse_rules

ALICE = "CN=alice,OU=Team A,O=Acme"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", ALICE, ALICE),
        ("RULE:^CN=(.*?),OU=Team A,.*$/$1@team/U", ALICE, "ALICE@TEAM"),
        ("RULE:^CN=(.*?),OU=Team A,.*$/$1@team/U", "CN=bob", None),
        ("RULE:^CN=(.*?),OU=Team A,.*$/$1/, DEFAULT", "CN=Bob", "CN=Bob"),
        ("RULE:^CN=(.*?)$/$1/L", "CN=Bob", "bob"),
        ("RULE:^cn=.*$/q/ ,RULE:^CN=(.*)$/first $1/,DEFAULT", "CN=Bob", "first Bob"),
        (r"RULE:^CN=(.*?)\/.*$/$1\/x/L", "CN=X/Y", "x/x"),
        ("RULE:^(a)|(CN=.*)$/$2-$3-$1/", "CN=Bob", "CN=Bob-$3-"),
        ("RULE:^CN=(.*)$/$12/", "CN=Bob", "Bob2"),
        (r"RULE:^CN=(.*)$/a\$1b/", "CN=Bob", "a$1b"),
        ("RULE:^CN=(?<who>.*)$/$1/", "CN=Bob", "Bob"),
        ("RULE:.*/x/", "CN=Bob", "xx"),
        ("RULE:^CN=(.*?)/$1/L", "CN=Bob", "bob"),
        ("", "CN=Bob", None),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_holds(rules: str, name: str, mapped: str | None) -> None:
    assert map_name(parse_rules(rules), name) == mapped


@pytest.mark.parametrize("rules", ["foo", "RULE:a/b", "DEFAULT foo", "RULE:^CN=(.*)$/$1/X", "RULE:(/b/", "DEFAULT,foo"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(RuleError):
        parse_rules(rules)
