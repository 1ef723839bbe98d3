"""Ports that are given to brokers and tests."""

from collections import deque

import pytest

from lamina.cluster import ports
from lamina.cluster.ports import free_port


def test_no_port_is_given_twice_while_nobody_listens_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_LISTENING", range(20000, 20020))
    monkeypatch.setattr(ports, "is_free", lambda port: port != 20007)
    monkeypatch.setattr(ports, "_given", deque(maxlen=1000))
    given = [free_port() for _ in range(19)]
    assert sorted(given) == [port for port in range(20000, 20020) if port != 20007]
