"""The proxy between the processes of a cluster: whole, cut one way, slow, and late with one kind of request."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from lamina.cluster.ports import HOST
from lamina.wire.building import build_request
from lamina.wire.codec import encode_request
from tests.broker.process import eventually
from tests.cluster.links import CLIENTS, ZOOKEEPER
from tests.cluster.proxy import Proxy, sender_of

METADATA, END_TXN = 3, 26
ONE, TWO = "broker-1", "broker-2"


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """What stands behind the proxy."""
    with socket.create_server((HOST, 0)) as listening:
        listening.settimeout(30)
        yield listening


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), 30)


def accepted(server: socket.socket) -> socket.socket:
    connection, _ = server.accept()
    connection.settimeout(30)
    return connection


def received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (more := connection.recv(size - len(found))):
        found += more
    return found


def has_received(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(30)


def request(client_id: str, api_key: int = METADATA) -> bytes:
    facts: dict[int, dict[str, Any]] = {
        METADATA: {"topics": None},
        END_TXN: {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "committed": True},
    }
    return bytes(encode_request(build_request(api_key, 1, facts[api_key]), 7, client_id))


def test_bytes_and_the_end_of_them_go_both_ways(proxy: Proxy, server: socket.socket) -> None:
    port = proxy.open_port(ZOOKEEPER, server.getsockname()[1], sender=ONE)
    with connected(port) as near, accepted(server) as far:
        near.sendall(b"question")
        assert received(far, 8) == b"question"
        far.sendall(b"answer" * 100_000)
        assert received(near, 600_000) == b"answer" * 100_000
        near.shutdown(socket.SHUT_WR)
        assert far.recv(1) == b""
        far.close()
        assert near.recv(1) == b""
    assert proxy.carried_bytes(ONE, ZOOKEEPER) == 8
    assert proxy.carried_bytes(ZOOKEEPER, ONE) == 600_000


def test_a_link_is_cut_in_one_direction_and_what_waits_arrives_when_it_is_whole(
    proxy: Proxy, server: socket.socket
) -> None:
    port = proxy.open_port(ZOOKEEPER, server.getsockname()[1], sender=ONE)
    with connected(port) as near, accepted(server) as far:
        proxy.cut([ONE], [ZOOKEEPER])
        near.sendall(b"question")
        near.shutdown(socket.SHUT_WR)
        eventually(lambda: proxy.waiting_bytes(ONE, ZOOKEEPER) == 8)
        far.sendall(b"answer")
        assert received(near, 6) == b"answer"
        assert not has_received(far)
        proxy.heal()
        assert received(far, 9) == b"question"


def test_who_connects_over_a_cut_link_is_connected_when_it_is_whole(proxy: Proxy, server: socket.socket) -> None:
    port = proxy.open_port(TWO, server.getsockname()[1])
    proxy.isolate(ONE, [TWO])
    with connected(port) as cut_off, connected(port) as other:
        cut_off.sendall(request("broker-1-fetch"))
        other.sendall(request("broker-3-fetch"))
        with accepted(server) as far:
            assert b"broker-3-fetch" in received(far, len(request("broker-3-fetch")))
        proxy.heal()
        with accepted(server) as far:
            assert b"broker-1-fetch" in received(far, len(request("broker-1-fetch")))


def test_who_is_reached_by_nobody_is_told_by_a_closed_connection(proxy: Proxy, server: socket.socket) -> None:
    port = proxy.open_port(TWO, server.getsockname()[1])
    server.close()
    with connected(port) as near:
        near.sendall(request("anybody"))
        with suppress(ConnectionResetError):
            assert near.recv(1) == b""


def test_a_party_that_is_refused_is_reached_again_through_the_same_port(proxy: Proxy, server: socket.socket) -> None:
    port = proxy.open_port(ZOOKEEPER, server.getsockname()[1], sender=ONE)
    with connected(port) as near, accepted(server) as far:
        proxy.refuse(ZOOKEEPER)
        with pytest.raises(ConnectionRefusedError):
            connected(port)
        near.sendall(b"question")
        assert received(far, 8) == b"question"
    proxy.accept(ZOOKEEPER)
    proxy.accept(ZOOKEEPER)
    with connected(port) as near, accepted(server) as far:
        near.sendall(b"again")
        assert received(far, 5) == b"again"


def test_senders_are_known_by_the_client_ids_of_their_requests() -> None:
    assert sender_of(request("broker-12-follow")) == "broker-12"
    assert sender_of(request("broker-3")) == "broker-3"
    assert sender_of(request("rdkafka")) == CLIENTS
    assert sender_of(request("")) == CLIENTS


def test_a_delay_holds_everything_up_by_so_much(proxy: Proxy, server: socket.socket) -> None:
    port = proxy.open_port(ZOOKEEPER, server.getsockname()[1], sender=ONE)
    with connected(port) as near, accepted(server) as far, ThreadPoolExecutor() as threads:
        proxy.delay([ONE], [ZOOKEEPER], 0.05)
        began = time.monotonic()
        arrived = threads.submit(lambda: (received(far, 3), time.monotonic()))
        for number in range(3):
            near.sendall(b"%d" % number)
        data, at = arrived.result()
        assert data == b"012"
        assert at - began >= 0.05


def test_one_kind_of_request_is_held_and_what_follows_it_on_its_connection(proxy: Proxy, server: socket.socket) -> None:
    port = proxy.open_port(TWO, server.getsockname()[1])
    usual, late = request("client"), request("client", END_TXN)
    with connected(port) as near:
        near.sendall(usual)
        with accepted(server) as far:
            assert received(far, len(usual)) == usual
            proxy.hold(END_TXN)
            near.sendall(late + usual)
            near.shutdown(socket.SHUT_WR)
            eventually(lambda: proxy.held_requests() == 1)
            proxy.let_pass()
            with connected(port) as again:
                again.sendall(late)
                with accepted(server) as elsewhere:
                    assert received(elsewhere, len(late)) == late
            assert not has_received(far)
            proxy.release()
            assert received(far, 1000) == late + usual
