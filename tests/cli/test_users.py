"""`lamina users`: who can log in by SCRAM (S43, S44)."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina

Start = Callable[..., BrokerProcess]
PASSWORD = "of a test; secret"
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def login(file: Path, user: str, mechanism: str = "SCRAM-SHA-512") -> Path:
    entry = f'{JAAS} username="{user}" password="{PASSWORD}";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={entry}\n")
    return file


def test_users_are_made_log_in_and_are_removed(
    lamina: Lamina, own_broker: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = own_broker(
        *("--set", "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"),
        *("--set", "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512"),
    )
    secure = broker.facts["listening"][1]["address"]
    where = ("--bootstrap-server", broker.address)
    outcome = lamina("users", "list", *where)
    assert (outcome.status, outcome.out) == (0, "")
    orders = login(tmp_path / "orders.properties", "orders")
    outcome = lamina("users", "set", "--login-of", orders, *where)
    assert outcome.out == "orders can log in by SCRAM-SHA-512.\n"
    assert lamina("topics", "list", "--bootstrap-server", secure, "--command-config", orders).status == 0
    monkeypatch.setattr("sys.stdin", StringIO(f"{PASSWORD}\n"))
    outcome = lamina("users", "set", "billing", "--mechanism", "scram-sha-256", *where)
    assert outcome.out == "billing can log in by SCRAM-SHA-256.\n"
    billing = login(tmp_path / "billing.properties", "billing", "SCRAM-SHA-256")
    assert lamina("topics", "list", "--bootstrap-server", secure, "--command-config", billing).status == 0
    told = lamina("users", "list", "--json", *where).objects
    assert told == [
        {"type": "user", "user": "billing", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"type": "user", "user": "orders", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    assert lamina("users", "remove", "orders", *where).status == 2, "without a terminal it needs --yes"
    outcome = lamina("users", "remove", "orders", "--yes", *where)
    assert outcome.out == "orders cannot log in by SCRAM-SHA-512 any more.\n"
    outcome = lamina("topics", "list", "--bootstrap-server", secure, "--command-config", orders)
    assert "does not accept this login" in outcome.err
    assert PASSWORD not in outcome.err + "".join(broker.log)
    outcome = lamina("users", "remove", "orders", "--yes", *where)
    assert outcome.status == 1
    assert outcome.err == "lamina: user 'orders' has no SCRAM passwords\n"
    outcome = lamina("users", "list", "orders", "billing", *where)
    assert (outcome.status, outcome.err) == (1, "lamina: user 'orders' has no SCRAM passwords\n")
    assert "billing" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give NAME, or --login-of FILE"),
        (("orders", "--login-of", "x"), "give NAME, or --login-of FILE"),
        (("",), "NAME is empty"),
        (("orders", "--iterations", "100"), "100 is not in the range 4096<=x<=16384"),
        (("orders",), "the password is the first line of standard input, and that is empty"),
    ],
)
def test_what_makes_no_sense_is_refused(
    lamina: Lamina, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(""))
    outcome = lamina("users", "set", *arguments)
    assert outcome.status == 2
    assert sentence in outcome.err


def test_a_file_without_a_login_by_scram_is_refused(lamina: Lamina, tmp_path: Path) -> None:
    file = login(tmp_path / "plain.properties", "orders", "PLAIN")
    outcome = lamina("users", "set", "--login-of", file)
    assert outcome.status == 2
    assert "ScramLoginModule is not for sasl.mechanism=PLAIN" in outcome.err
    assert PASSWORD not in outcome.err


def test_who_may_not_is_told_so(lamina: Lamina, own_broker: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka's binding ended the process at the first."""
    where = ("--bootstrap-server", own_broker("--set", f"authorizer.class.name={STANDARD_AUTHORIZER}").address)
    monkeypatch.setattr("sys.stdin", StringIO(f"{PASSWORD}\n"))
    for what, arguments in (
        ("DESCRIBE", ("list",)),
        ("DESCRIBE", ("list", "orders")),
        ("ALTER", ("set", "orders")),
        ("DESCRIBE", ("remove", "orders", "--yes")),
    ):
        outcome = lamina("users", *arguments, *where)
        assert (outcome.status, outcome.out) == (1, ""), arguments
        assert outcome.err.endswith(
            f"{what} on the cluster is not allowed; ask for the permission, or use another identity with "
            "--command-config\n"
        )
