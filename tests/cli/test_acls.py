"""``lamina acls`` against a broker with an authorizer, where whoever has no login is a super user."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.process import BrokerProcess, eventually
from tests.cli.running import Lamina

Start = Callable[..., BrokerProcess]
READING = ("add", "--allow-principal", "User:a", "--operation", "Read")
PREFIXED = ("--resource-pattern-type", "prefixed")
AUTHORIZER = ("--set", f"authorizer.class.name={STANDARD_AUTHORIZER}", "--set", "super.users=User:ANONYMOUS")


def test_rules_are_added_listed_and_removed(lamina: Lamina, own_broker: Start) -> None:
    where = ("--bootstrap-server", own_broker(*AUTHORIZER).address)
    assert lamina("acls", "list", *where).out == "There are no such access rules.\n"
    orders = ("--topic", "orders")
    added = lamina("acls", "add", "--allow-principal", "User:alice", "--operation", "describe-configs", *orders, *where)
    assert (added.status, added.out) == (0, "Added: allow User:alice DescribeConfigs on Topic orders.\n")
    lamina("acls", "add", "--allow-principal", "User:app", "--consumer", *orders, "--group", "billing", *where)
    prefixed = ("--resource-pattern-type", "prefixed", "--operation", "All", "--topic", "ord")
    local = ("--allow-host", "::1", "--group", "app-*", *where)
    starred = lamina("acls", "add", "--allow-principal", "User:eve", "--operation", "Read", *local)
    assert starred.out == "Added: allow User:eve Read on Group app-* from 0:0:0:0:0:0:0:1.\n"
    assert "app-*: a star at the end of a name is a part of the name" in starred.err
    assert lamina("acls", "remove", "--principal", "User:eve", "--host", "::1", "--yes", *where).status == 0
    denied = lamina("acls", "add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.7", *prefixed, *where)
    assert denied.out == "Added: deny User:bob All on Topic names that begin with ord from 10.0.0.7.\n"
    rows = lamina("acls", "list", "--json", *where).objects
    assert [(row["resource"], row["principal"], row["operation"]) for row in rows] == [
        ("ord", "User:bob", "All"),
        ("orders", "User:alice", "DescribeConfigs"),
        ("orders", "User:app", "Read"),
        ("orders", "User:app", "Describe"),
        ("billing", "User:app", "Read"),
    ]
    assert rows[0] == {
        "type": "acl",
        "resource_type": "Topic",
        "resource": "ord",
        "pattern_type": "Prefixed",
        "principal": "User:bob",
        "host": "10.0.0.7",
        "operation": "All",
        "permission": "Deny",
    }
    matching = lamina("acls", "list", *orders, "--resource-pattern-type", "match", *where).out.splitlines()
    assert matching[0].split() == ["resource", "type", "resource", "pattern", "type", *matching[0].split()[5:]]
    assert [line.split()[1] for line in matching[1:]] == ["ord", "orders", "orders", "orders"]
    assert lamina("acls", "remove", "--principal", "User:app", *where).status == 2, "nobody is here to be asked"
    removed = lamina("acls", "remove", "--principal", "User:app", *orders, "--yes", *where).out
    assert removed.count("Removed: allow User:app") == 2
    assert len(lamina("acls", "list", "--json", *where).objects) == 3
    nothing = lamina("acls", "remove", "--principal", "User:eve", "--yes", *where)
    assert (nothing.status, nothing.err) == (1, "lamina: no access rule matches; `lamina acls list` shows them\n")


def test_a_denial_is_told_to_who_asked_and_to_the_audit(lamina: Lamina, own_broker: Start, tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    authorizer = ("--set", f"authorizer.class.name={STANDARD_AUTHORIZER}", "--set", f"lamina.audit.log={audit}")
    where = ("--bootstrap-server", own_broker(*authorizer).address)
    outcome = lamina("acls", "list", *where)
    assert outcome.status == 1
    assert "DESCRIBE on the cluster is not allowed" in outcome.err
    eventually(lambda: audit.read_text().endswith("\n"))
    (told,) = map(json.loads, audit.read_text().splitlines())
    assert (told["decision"], told["principal"], told["request"]) == ("denied", "User:ANONYMOUS", "DescribeAcls")
    assert {"time", "level"} < told.keys()
    assert audit.stat().st_mode & 0o777 == 0o600


def test_an_audit_that_cannot_be_written_stops_the_start(lamina: Lamina, tmp_path: Path) -> None:
    unwritable = f"lamina.audit.log={tmp_path}/no/such/directory"
    outcome = lamina("serve", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0", "--set", unwritable)
    assert outcome.status == 1
    assert "lamina.audit.log: " in outcome.err


def test_without_an_authorizer_there_are_no_rules(lamina: Lamina, broker: BrokerProcess) -> None:
    outcome = lamina("acls", "list", "--bootstrap-server", broker.address)
    assert outcome.status == 1
    assert "set authorizer.class.name on every broker" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "--operation", "Read", "--topic", "t"), "--allow-principal User:NAME"),
        (("add", "--allow-principal", "User:a", "--topic", "t"), "either --operation, or --producer"),
        (("add", "--allow-principal", "User:a", "--operation", "Read"), "name a resource"),
        (("add", "--allow-principal", "a", "--operation", "Read", "--topic", "t"), "Type:name, such as User:alice"),
        (("add", "--allow-principal", "User:a", "--operation", "Eat", "--topic", "t"), "'Eat' is not an operation"),
        (("add", "--allow-principal", "User:a", "--producer", "--group", "g"), "need nothing of 'g'"),
        (
            (*READING, "--topic", "t", "--deny-host", "10.0.0.7"),
            "--deny-host says from where those of --deny-principal",
        ),
        (("remove",), "say which rules"),
        (("list", "--resource-pattern-type", "regex"), "'regex' is not a type of pattern"),
    ],
)
def test_bad_input_never_reaches_the_broker(lamina: Lamina, arguments: tuple[str, ...], said: str) -> None:
    check_refused(lamina, arguments, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("add", "--allow-principal", "User:a", "--operation", "Write", "--group", "g"),
            "there is no Write on Group g: use Read, Delete, Describe, DescribeConfigs, AlterConfigs or All",
        ),
        ((*READING, "--cluster"), "there is no Read on Cluster kafka-cluster: use Create, Alter, Describe"),
        ((*READING, "--topic", "t", "--transactional-id", "x"), "there is no Read on TransactionalId x: use Write"),
        ((*READING, "--user-principal", "User:a"), "use CreateTokens, DescribeTokens or All"),
        (
            ("add", "--allow-principal", "group:a", "--operation", "Read", "--topic", "t"),
            "'group:a': every principal here is of the type User: User:a",
        ),
        (
            ("add", "--deny-principal", "User: a", "--operation", "Read", "--topic", "t"),
            "'User: a': no user's name begins or ends with a space: User:a",
        ),
        (
            ("add", "--allow-principal", "User:a", "--operation", "CreateTokens", "--user-principal", "b"),
            "'b': every principal here is of the type User: User:alice",
        ),
        ((*READING, "--topic", "t", "--allow-host", "app.example"), "'app.example' is no address: rules compare"),
        ((*READING, "--topic", "t", "--allow-host", "10.0.0.0/8"), "not names or networks; leave it out for all"),
        (
            (*READING, "--topic", "app.*"),
            "the topic name 'app.*' has characters other than ASCII letters, digits, '.', '_' and '-'; "
            "for all that begin with it: --topic app. --resource-pattern-type prefixed",
        ),
        ((*READING, "--topic", "a b"), "the topic name 'a b' has characters other than"),
        ((*READING, "--topic", "*", *PREFIXED), "no topic's name begins with a star"),
        ((*READING, "--topic", "app.*", *PREFIXED), "for all that begin with it: --topic app. --resource"),
    ],
)
def test_a_rule_that_nothing_could_match_is_refused(lamina: Lamina, arguments: tuple[str, ...], said: str) -> None:
    check_refused(lamina, arguments, said)


def check_refused(lamina: Lamina, arguments: tuple[str, ...], said: str) -> None:
    outcome = lamina("acls", *arguments, "--bootstrap-server", "127.0.0.1:1")
    assert outcome.status == 2
    assert said in " ".join(outcome.err.split())
