"""When a hello is there, over TCP, on which the system waits for as many bytes as it is told."""

import select
import socket
from collections.abc import Iterator

import pytest

from lamina.broker.network.client_hello import ClientHello, Hello

WHOLE = b"\x16\x03\x01\x00\x0a" + bytes(10)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname(), timeout=30)
        ours, _ = listening.accept()
    ours.setblocking(False)
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with ours, theirs:
        yield ours, theirs


def is_told(ours: socket.socket, seconds: float) -> bool:
    return bool(select.select([ours], [], [], seconds)[0])


def test_the_loop_is_told_of_the_header_and_then_of_the_whole(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    hello = ClientHello(ours)
    assert hello.look() is Hello.NONE
    for begin, end in ((0, 1), (1, 5), (5, len(WHOLE) - 1)):
        assert not is_told(ours, 0)
        theirs.sendall(WHOLE[begin:end])
        if end < 6:
            assert is_told(ours, 30)
            assert hello.look() is Hello.PART
    assert not is_told(ours, 0)
    theirs.sendall(WHOLE[-1:])
    assert is_told(ours, 30)
    assert hello.look() is Hello.WHOLE
    assert ours.recv(1) == WHOLE[:1]
    assert is_told(ours, 30), "whoever reads it is told of each byte again"


def test_a_part_and_no_more_is_early(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    hello = ClientHello(ours)
    theirs.sendall(WHOLE[:1])
    assert is_told(ours, 30)
    assert hello.look() is Hello.PART
    assert hello.look() is Hello.EARLY


@pytest.mark.parametrize("said", [b"GET", b"\x00\x00", b"\x16\x02", b"\x15\x03"])
def test_what_is_no_tls(pair: tuple[socket.socket, socket.socket], said: bytes) -> None:
    ours, theirs = pair
    theirs.sendall(said)
    assert is_told(ours, 30)
    assert ClientHello(ours).look() is Hello.NO_TLS


def test_who_left_without_a_word(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.close()
    assert is_told(ours, 30)
    assert ClientHello(ours).look() is Hello.GONE
