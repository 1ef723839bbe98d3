"""Why servers do not answer, in words."""

import socket

import pytest

from lamina.cluster.ports import free_port
from lamina.store.silent_servers import why_silent


def unknown_name(*_: object) -> None:
    raise socket.gaierror(-2, "Name or service not known")


def test_a_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", unknown_name)
    assert why_silent(["zk1:2181"]) == "zk1:2181 (the name cannot be resolved); correct zookeeper.connect"


def test_each_server_has_its_own_cause() -> None:
    free = f"127.0.0.1:{free_port()}"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        taken = f"127.0.0.1:{silent.getsockname()[1]}"
        assert why_silent([free, taken]) == (
            f"{free} (connection refused), {taken} (it accepts the connection and says nothing); "
            "check that a majority of the servers runs, and that the port is the one for clients"
        )
