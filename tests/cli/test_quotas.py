"""``lamina quotas``, against a broker of its own: quotas hold for everybody."""

from collections.abc import Callable

from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

Start = Callable[..., BrokerProcess]


def test_quotas_are_set_listed_and_removed(lamina: Lamina, own_broker: Start) -> None:
    where = ("--bootstrap-server", own_broker().address)
    outcome = lamina("quotas", "list", *where)
    assert (outcome.status, outcome.out) == (0, "")
    outcome = lamina("quotas", "set", "--user", "alice", "producer_byte_rate=10MiB", "request_percentage=12.5", *where)
    assert outcome.out.splitlines() == [
        "user alice: producer_byte_rate = 10485760",
        "user alice: request_percentage = 12.5",
    ]
    both = ("--default-user", "--client-id", "app")
    (told,) = lamina("quotas", "set", *both, "consumer_byte_rate=1000", "--json", *where).objects
    entity = [{"entity_type": "user", "name": None}, {"entity_type": "client-id", "name": "app"}]
    assert told == {
        "type": "quota_change",
        "entity": entity,
        "quota": "consumer_byte_rate",
        "value": 1000.0,
        "dry_run": False,
    }
    lamina("quotas", "set", "--default-ip", "connection_creation_rate=50", *where)
    lines = [line.split("  ") for line in lamina("quotas", "list", *where).out.splitlines()]
    assert [[cell.strip() for cell in line if cell] for line in lines] == [
        ["entity", "quota", "value"],
        ["ip default", "connection_creation_rate", "50"],
        ["user default, client-id app", "consumer_byte_rate", "1000"],
        ["user alice", "producer_byte_rate", "10485760"],
        ["user alice", "request_percentage", "12.5"],
    ]
    (told,) = lamina("quotas", "list", *both, "--json", *where).objects
    assert told == {"type": "quota", "entity": entity, "quota": "consumer_byte_rate", "value": 1000.0}
    outcome = lamina("quotas", "remove", "--user", "alice", "producer_byte_rate", "--dry-run", *where)
    assert outcome.out == "user alice: producer_byte_rate could be removed\n"
    outcome = lamina("quotas", "remove", "--user", "alice", *where)
    assert outcome.out == "user alice: producer_byte_rate removed\nuser alice: request_percentage removed\n"
    listed = lamina("quotas", "list", "--user", "alice", *where)
    assert (listed.out, listed.err) == ("", "lamina: there are no such quotas\n")
    again = lamina("quotas", "remove", "--user", "alice", *where)
    assert (again.status, again.out, again.err) == (0, "", "lamina: user alice has no quotas\n")


def test_who_may_not_is_told_so(lamina: Lamina, own_broker: Start) -> None:
    where = ("--bootstrap-server", own_broker("--set", f"authorizer.class.name={STANDARD_AUTHORIZER}").address)
    for arguments in (("list",), ("set", "--user", "a", "producer_byte_rate=1")):
        outcome = lamina("quotas", *arguments, *where)
        assert outcome.status == 1
        assert "on the cluster is not allowed; ask for the permission, or use another identity" in outcome.err


def test_what_cannot_be_set_is_one_sentence(lamina: Lamina, own_broker: Start) -> None:
    where = ("--bootstrap-server", own_broker().address)
    for arguments, words in (
        (("--user", "alice", "producer_byte_rate=0"), "must be a number above 0"),
        (("--user", "alice", "connection_creation_rate=5"), "no quota of user alice"),
        (("--ip", "10.0.0.1", "connection_creation_rate=0.5"), "must be a whole number"),
    ):
        outcome = lamina("quotas", "set", *arguments, *where)
        assert (outcome.status, outcome.err.count("\n")) == (1, 1), arguments
        assert words in outcome.err


def test_bad_input_never_reaches_the_broker(lamina: Lamina) -> None:
    nowhere = ("--bootstrap-server", "127.0.0.1:1")
    outcome = lamina("quotas", "set", "--user", "User:alice", "producer_byte_rate=1", *nowhere)
    assert "--user takes the name without User: --user alice" in outcome.err
    for arguments in (
        ("set", "--user", "User:alice", "producer_byte_rate=1"),
        ("set", "producer_byte_rate=1"),
        ("set", "--user", "a", "--default-user", "producer_byte_rate=1"),
        ("set", "--user", "a", "producer_byte_rate"),
        ("set", "--user", "a", "producer_byte_rate=much"),
        ("set", "--user", "a"),
        ("set", "--user", "a", "--ip", "10.0.0.1", "connection_creation_rate=1"),
        ("set", "--ip", "a.host.invalid", "connection_creation_rate=1"),
        ("remove",),
    ):
        assert lamina("quotas", *arguments, *nowhere).status == 2, arguments


def test_a_misspelled_quota_is_told_what_was_meant(lamina: Lamina) -> None:
    outcome = lamina("quotas", "set", "--user", "a", "producer_byte_rat=1MiB", "--bootstrap-server", "127.0.0.1:1")
    assert outcome.status == 2
    assert "producer_byte_rat = 1MiB: there is no such quota; did you mean producer_byte_rate?" in outcome.err
