"""Which servers of an ensemble answer, and what that means."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from lamina.cli.doctor.ensemble import ServerFacts, check_ensemble, judge_ensemble
from lamina.cli.doctor.finding import State
from lamina.cluster.ports import free_port
from lamina.settings.zookeeper_options import Tls, ZooKeeperOptions
from tests.cli.running import Lamina


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """Says one thing to whoever comes, as ZooKeeper does to a four-letter word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join(30)


def test_servers_that_are_well_or_do_not_say_count_and_one_that_is_away_is_named() -> None:
    away = f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        answers = (b"imok", b"ruok is not executed because it is not in the whitelist.\n")
        hosts = tuple(stack.enter_context(server(answer)) for answer in answers)
        finding = check_ensemble(ZooKeeperOptions((*hosts, away)))
    assert finding.state is State.WARNING
    assert finding.what == f"2 of 3 servers answer: {away} connection refused"


def test_behind_tls_it_is_enough_that_somebody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        tls = Tls(None, None, None, checks_hostname=True)
        hosts = (f"127.0.0.1:{listening.getsockname()[1]}",)
        assert check_ensemble(ZooKeeperOptions(hosts, tls=tls)).what == "1 of 1 servers answer"


@pytest.mark.parametrize(
    ("away", "state"), [(0, State.FINE), (1, State.WARNING), (2, State.PROBLEM), (3, State.PROBLEM)]
)
def test_a_majority_has_to_answer(away: int, state: State) -> None:
    servers = [ServerFacts(f"zk{n}:2181", "connection refused" if n < away else None) for n in range(3)]
    assert judge_ensemble(servers).state is state


def test_an_even_number_is_warned_of() -> None:
    finding = judge_ensemble([ServerFacts("zk1:2181"), ServerFacts("zk2:2181")])
    assert finding.state is State.WARNING
    assert "odd number" in finding.advice


def test_the_doctor_looks_where_the_settings_say(lamina: Lamina, tmp_path_factory: pytest.TempPathFactory) -> None:
    port = free_port()
    arguments = ("--json", "--data-dir", tmp_path_factory.mktemp("data"), "--listen", "127.0.0.1:0")
    rows = lamina("doctor", *arguments, "--set", f"zookeeper.connect=127.0.0.1:{port}/lamina").objects
    (found,) = (row for row in rows if row.get("name") == "zookeeper")
    assert (found["state"], found["what"]) == (
        "problem",
        f"0 of 1 servers answer: 127.0.0.1:{port} connection refused",
    )
    assert not any(row.get("name") == "zookeeper" for row in lamina("doctor", *arguments).objects)
