"""Strangers on a port with TLS who begin and do not go on: they cost little, and others are served (S21, S85)."""

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient
from tests.broker.tls import api_versions_request
from tests.tls.certificates import Authority

AUTHORITY = Authority()
KIBIBYTE, MEBIBYTE = 1024, 1024 * 1024


class OverTls:
    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    def connect(self) -> socket.socket:
        context = ssl.create_default_context(cadata=AUTHORITY.certificates)
        return context.wrap_socket(self._broker.connect(), server_hostname="127.0.0.1")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    given = {
        "listeners": "SSL://127.0.0.1:0",
        "socket.listen.backlog.size": "1000",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(AUTHORITY.issue("127.0.0.1").pem(tmp_path / "own.pem")),
    }
    with BrokerProcess(
        tmp_path / "data", *(part for each in given.items() for part in ("--set", "=".join(each)))
    ) as one:
        yield one
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not [line for line in one.log if "Traceback" in line], one.log


def ask(broker: BrokerProcess) -> None:
    with RawClient(OverTls(broker)) as client:
        client.send(api_versions_request())
        assert client.receive_frame()


def hello() -> bytes:
    """The first that a client says, whole."""
    to_server = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), to_server, server_hostname="127.0.0.1")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return to_server.read()


@pytest.fixture
def narrow_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With few descriptors."""
    given = {
        "listeners": "SSL://127.0.0.1:0",
        "socket.listen.backlog.size": "1000",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(AUTHORITY.issue("127.0.0.1").pem(tmp_path / "own.pem")),
    }
    settings = (part for each in given.items() for part in ("--set", "=".join(each)))
    process = BrokerProcess(tmp_path / "data", *settings)
    process.open_files = 192
    with process:
        yield process
    assert not [line for line in process.log if "Traceback" in line], process.log


@pytest.mark.parametrize("said", [b"", b"\x16", hello()], ids=["nothing", "a byte", "half of a handshake"])
def test_strangers_who_take_all_descriptors_give_way_to_others(narrow_broker: BrokerProcess, said: bytes) -> None:
    strangers = [narrow_broker.connect() for _ in range(400)]
    try:
        for one in strangers:
            with suppress(OSError):
                one.sendall(said)
        ask(narrow_broker)
    finally:
        for one in strangers:
            one.close()


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("said", "most_bytes_each"),
    [(b"", 8 * KIBIBYTE), (b"\x16", 8 * KIBIBYTE), (hello(), 80 * KIBIBYTE)],
    ids=["nothing", "a byte", "half of a handshake"],
)
def test_strangers_who_stop_in_the_middle_cost_little_and_others_are_served(
    broker: BrokerProcess, count: int, said: bytes, most_bytes_each: int
) -> None:
    """Two hundred show what each costs; of ten thousand only a few are in their handshake at a time."""
    ask(broker)
    before = broker.peak_bytes()
    strangers = [broker.connect() for _ in range(count)]
    try:
        for one in strangers:
            with suppress(OSError):
                one.sendall(said)
        ask(broker)
        assert broker.peak_bytes() - before < min(2 * MEBIBYTE + count * most_bytes_each, 48 * MEBIBYTE)
    finally:
        for one in strangers:
            one.close()
    ask(broker)
