"""``lamina watch``, against a broker of its own: log levels are the broker's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina, Outcome

START = Callable[..., BrokerProcess]


@pytest.fixture
def watch(own_broker: START, lamina: Lamina) -> Callable[..., Outcome]:
    broker = own_broker()
    token = str(broker.data_dir / "admin.token")

    def run(*args: str) -> Outcome:
        return lamina("watch", *args, "--bootstrap-server", broker.address, "--token-file", token)

    return run


def test_levels_are_shown_and_changed(watch: Callable[..., Outcome]) -> None:
    packages = watch("log-levels").out
    assert "lamina.log " in packages
    assert "lamina.broker.admin" not in packages
    assert all(line.split()[0].count(".") <= 1 for line in packages.splitlines())
    assert "lamina.broker.admin" in watch("log-levels", "--all").out
    assert watch("log-levels", "lamina.log", "debug", "--json").objects == [
        {"type": "log_level", "logger": "lamina.log", "level": "debug", "is_set": True}
    ]
    assert watch("log-levels", "lamina.log").out.splitlines()[1].split() == ["lamina.log", "debug", "yes"]
    watch("log-levels", "lamina.broker.timers", "error")
    assert "lamina.broker.timers" in watch("log-levels").out
    assert not watch("log-levels", "lamina.log", "default", "--json").objects[0]["is_set"]
    assert watch("log-levels", "no.such.logger").status == 2
    assert "did you mean lamina.log?" in watch("log-levels", "lamina.logs").err
    assert "`lamina watch log-levels lamina debug`" in watch("log-levels", "debug").err
    refused = watch("log-levels", "no.such.logger", "debug")
    assert refused.status == 1
    assert "no.such.logger" in refused.err


def test_connections_and_slow_requests_are_shown(watch: Callable[..., Outcome]) -> None:
    rows = watch("connections", "--json").objects
    assert [row["type"] for row in rows] == ["connection"] * len(rows)
    assert rows[0]["client_id"] == "lamina"
    assert watch("connections").out.splitlines()[0].split()[:2] == ["id", "peer"]
    assert watch("slow-requests").out == "No slow requests since the broker started.\n"
    assert watch("slow-requests", "--json").objects == []


def test_requests_are_followed_until_that_is_stopped(watch: Callable[..., Outcome]) -> None:
    assert watch("follow").err == "lamina: no requests are logged\n"
    assert watch("follow", "some/client").out == "some/client\n"
    assert watch("follow", "--json").objects == [{"type": "followed", "followed": ["some/client"]}]
    assert watch("follow", "some/client", "--stop").out == ""
    assert watch("follow", "--stop").status == 2


def test_the_token_is_asked_for(
    own_broker: START, lamina: Lamina, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = own_broker()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAMINA_ADMIN_TOKEN", raising=False)
    args = ("watch", "log-levels", "lamina.log", "debug", "--bootstrap-server", broker.address)
    refused = lamina(*args)
    assert refused.status == 1
    assert "Authorization" not in refused.err
    assert refused.err == (
        "lamina: the broker wants its admin token for this: name the token file with --token-file, "
        "or put the token into LAMINA_ADMIN_TOKEN; the broker keeps the file admin.token in "
        f"{broker.data_dir}\n"
    )
    (tmp_path / "other").write_text("not this one\n")
    wrong = lamina(*args, "--token-file", "other")
    assert wrong.err.startswith("lamina: the broker does not accept the admin token from other: ")
    lost = lamina(*args, "--token-file", "missing")
    assert (lost.status, lost.err) == (
        2,
        "lamina: the admin token file missing cannot be read: no such file or directory; run this as the user that the "
        "broker runs as, name another file with --token-file, or put the token into LAMINA_ADMIN_TOKEN\n",
    )
    monkeypatch.setenv("LAMINA_ADMIN_TOKEN", (broker.data_dir / "admin.token").read_text().strip())
    assert lamina(*args).status == 0


def test_a_broker_without_an_admin_listener_says_so(own_broker: START, lamina: Lamina) -> None:
    broker = own_broker("--set", "lamina.admin.listeners=")
    outcome = lamina("watch", "connections", "--bootstrap-server", broker.address)
    assert outcome.status == 1
    assert "switched off" in outcome.err


def test_an_address_where_nobody_listens_ends_with_status_3(own_broker: START, lamina: Lamina) -> None:
    broker = own_broker("--set", "lamina.admin.advertised.listeners=127.0.0.1:1")
    outcome = lamina("watch", "connections", "--bootstrap-server", broker.address)
    assert outcome.status == 3
    assert "127.0.0.1:1" in outcome.err
