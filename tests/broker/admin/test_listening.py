"""Where the admin listener is, who may call it what, and that nobody can hold it up."""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from lamina.broker.admin import listening
from lamina.broker.admin.listening import bind_admin
from lamina.settings.listeners import Listener
from lamina.settings.resolve import resolve_broker
from tests.broker.admin.asking import admin_address, ask, connect, get, read_all, refused
from tests.broker.process import BrokerProcess, eventually, keep_port
from tests.cli.test_serve import refusal, serve

ADVERTISED = "lamina.admin.advertised.listeners"


def advertised(broker: BrokerProcess) -> str:
    """What a tool finds through Kafka's own protocol."""
    resource = ConfigResource(ResourceType.BROKER, "1")
    admin = AdminClient({"bootstrap.servers": broker.address})
    return str(admin.describe_configs([resource])[resource].result(30)[ADVERTISED].value)


# Ports


def test_brokers_that_choose_their_port_each_have_a_listener_and_tell_where(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "one") as one, BrokerProcess(tmp_path / "two") as two:
        assert admin_address(one) != admin_address(two)
        for broker in (one, two):
            host, port = admin_address(broker)
            assert host == "127.0.0.1"
            assert broker.facts["admin"] == [{"host": host, "port": port, "url": f"http://{host}:{port}"}]
            assert advertised(broker) == f"{host}:{port}"
            assert get(broker, "/v1/brokers")["cluster_id"] == broker.facts["cluster_id"]


def test_brokers_that_start_at_the_same_time_do_not_take_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = resolve_broker(sets={"listeners": "PLAINTEXT://127.0.0.1:0"})
    with keep_port() as kept:
        port = kept.getsockname()[1]
        default = (Listener("ADMIN", "HTTP", "127.0.0.1", port),)
        monkeypatch.setattr(listening, "admin_listeners", lambda _settings: default)
        one, two = bind_admin(settings), bind_admin(settings)
        try:
            assert one[0].port == port
            assert two[0].port != port
        finally:
            for bound in (*one, *two):
                bound.socket.close()


def test_a_port_that_was_asked_for_and_is_taken_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = f"lamina.admin.listeners={address}"
        said = refusal("--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0", "--set", asked)
    assert address in said
    assert "lamina.admin.listeners=HOST:PORT" in said
    assert not (tmp_path / "data").exists(), "nothing is touched"


def test_a_broker_at_a_fixed_port_does_not_move_its_admin_listener(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "one"), keep_port() as kept:
        # Either that broker has 9644, or whoever kept it from that broker has.
        said = refusal("--data-dir", tmp_path / "two", "--listen", f"127.0.0.1:{kept.getsockname()[1]}")
    assert "127.0.0.1:9644" in said


def test_no_listener(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker("--set", "lamina.admin.listeners=")
    assert broker.facts["admin"] == []
    assert advertised(broker) == ""
    assert not (broker.data_dir / "admin.token").exists()


def test_several_listeners_and_what_is_advertised_for_them(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker(
        "--set",
        "lamina.admin.listeners=127.0.0.1:0, http://[::1]:0",
        "--set",
        f"{ADVERTISED}=admin.example.org:80",
    )
    four, six = broker.facts["admin"]
    assert (four["host"], six["host"]) == ("127.0.0.1", "::1")
    assert six["url"] == f"http://[::1]:{six['port']}"
    assert advertised(broker) == "admin.example.org:80"
    settings = {one["name"]: one for one in json_over("::1", six["port"], "/v1/settings")["settings"]}
    assert (settings[ADVERTISED]["value"], settings[ADVERTISED]["source"]) == ("admin.example.org:80", "set")
    assert json_over("127.0.0.1", four["port"], "/healthz") == {"status": "alive"}


def json_over(host: str, port: int, path: str) -> Any:
    with socket.create_connection((host, port), timeout=30) as connection:
        connection.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
        return json.loads(read_all(connection).partition(b"\r\n\r\n")[2])


def test_on_every_address_tools_are_sent_where_clients_are_and_a_warning_is_loud(tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path,
        *("--set", "listeners=PLAINTEXT://127.0.0.1:0"),
        *("--set", "advertised.listeners=PLAINTEXT://localhost:0"),
        *("--set", "lamina.admin.listeners=:0"),
    )
    with broker:
        [admin] = broker.facts["admin"]
        assert advertised(broker) == f"localhost:{admin['port']}"
        broker.wait_for_log("OPEN TO OTHERS: the admin listener")
        told = json_over("127.0.0.1", admin["port"], "/healthz")
        assert told == {"status": "alive"}
    assert "OPEN TO OTHERS" not in serve("--data-dir", tmp_path, "--listen", "127.0.0.1:0").err


@pytest.mark.parametrize(
    "given",
    [
        "lamina.admin.listeners=9644",
        "lamina.admin.listeners=127.0.0.1:99999",
        "lamina.admin.listeners=ftp://127.0.0.1:0",
        "lamina.admin.listeners=127.0.0.1:0,,",
        f"{ADVERTISED}=:9644",
        f"{ADVERTISED}=host:0",
        f"{ADVERTISED}=0.0.0.0:9644",
    ],
)
def test_addresses_that_cannot_be(tmp_path: Path, given: str) -> None:
    said = refusal("--data-dir", tmp_path, "--listen", "127.0.0.1:0", "--set", given, status=2)
    assert given.partition("=")[0] in said


# Names


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9:1", "[::1]:80", "localhost:9644"])
def test_names_of_this_machine(broker: BrokerProcess, host: str) -> None:
    assert ask(broker, "/healthz", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example.org", "evil.example.org:9644", "10.0.0.1", "localhost.evil.org", "", "[", "1"]
)
def test_other_names_are_refused_on_an_address_of_this_machine(broker: BrokerProcess, host: str) -> None:
    assert "localhost" in refused(broker, "/v1/settings", 403, headers={"Host": host})


# Bounds


def test_a_huge_header_is_refused(broker: BrokerProcess) -> None:
    for size_bytes in (30_000, 1_000_000):
        with connect(broker) as connection:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * size_bytes + b"\r\n\r\n")
            said = read_all(connection)
            assert not said or said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")), said[:100]
    get(broker, "/healthz")


@pytest.mark.parametrize("bytes_sent", [b"\x00\x00\x00\x12\x00\x12\x00\x03", b"hello\r\n\r\n"])
def test_what_is_not_http_gets_an_answer_that_is(broker: BrokerProcess, bytes_sent: bytes) -> None:
    with connect(broker) as connection:
        connection.sendall(bytes_sent + b"\r\n" * 2)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"] == "bad_request"


def test_a_huge_body_is_refused_and_not_read(broker: BrokerProcess) -> None:
    token = (broker.data_dir / "admin.token").read_text().strip()
    head = f"PUT /v1/log-levels/lamina HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    with connect(broker) as connection:
        connection.sendall(head.encode() + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 20_000)
        said = read_all(connection)
    assert said.startswith(b"HTTP/1.1 413")


def test_a_body_that_nobody_asked_for_ends_the_connection(broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200")


def test_more_connections_than_there_may_be(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    idle = [connect(broker) for _ in range(64)]
    try:

        def is_full() -> bool:
            return ask(broker, "/healthz").status == 503

        eventually(is_full)
        assert "64 connections" in refused(broker, "/healthz", 503)
    finally:
        for connection in idle:
            connection.close()
    eventually(lambda: ask(broker, "/healthz").status == 200)


def test_requests_one_after_another_and_many_at_once_on_one_connection(broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 21


# The end


def test_clients_that_dawdle_do_not_hold_up_the_stop(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    get(broker, "/healthz")
    token = (broker.data_dir / "admin.token").read_text().strip()
    head = f"PUT /v1/log-levels/lamina HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    said_nothing, half_a_header, half_a_body, idle = (connect(broker) for _ in range(4))
    half_a_header.sendall(b"GET /heal")
    half_a_body.sendall(head.encode() + b"Content-Length: 100\r\n\r\n{")
    idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert idle.recv(100)
    broker.stop()
    for connection in (said_nothing, half_a_header, half_a_body, idle):
        read_all(connection)
        connection.close()
    assert not [line for line in broker.log if "Traceback" in line], broker.log


def test_a_connection_that_came_just_before_the_stop(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    with connect(broker) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        broker.stop()
        read_all(connection)
    assert not [line for line in broker.log if "Traceback" in line], broker.log


def test_a_kafka_client_on_the_admin_port_is_told_of_once(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    host, port = admin_address(broker)
    hello = b"\0\0\0\x0a\0\x12\0\3\0\0\0\1\0\0"
    for _ in range(3):
        with socket.create_connection((host, port), timeout=30) as client:
            client.sendall(hello)
            assert b"this is not HTTP/1.1" in read_all(client)
    said = broker.wait_for_log("admin port")
    assert f"a Kafka client at 127.0.0.1 connected to the admin port {port}, which speaks HTTP" in said
    assert get(broker, "/healthz") == {"status": "alive"}
    broker.stop()
    assert len([line for line in broker.log if "admin port" in line]) == 1
    assert not any("Invalid HTTP request" in line for line in broker.log)
