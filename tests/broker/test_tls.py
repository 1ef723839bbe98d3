"""TLS on a broker's listeners, seen by clients without mercy (security facts S16, S18, S19, S23, S24)."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.requests.request import ANONYMOUS
from tests.broker.raw import BEYOND_PATIENCE_MS, RawClient, batch_of, fetch_request
from tests.broker.tls import Over, Plainly, TlsBroker, api_versions_request
from tests.tls.certificates import LONG_AGO, Authority, Identity

AUTHORITY, STRANGER = Authority(), Authority()
ALICE = AUTHORITY.issue(name="alice")
RULES = "RULE:^CN=nobody,.*$/x/,RULE:^CN=(.*?),OU=Testing cert.*$/$1/"
NAMES = ("PLAINTEXT", "SSL", "MUTUAL", "MAPPED", "ASKING", "LOGIN")
LISTENERS = {
    "listeners": ",".join(f"{name}://127.0.0.1:0" for name in NAMES),
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,MAPPED:SSL,ASKING:SSL,LOGIN:SASL_SSL",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.login.ssl.client.auth": "required",
    "listener.name.mapped.ssl.client.auth": "required",
    "listener.name.mapped.ssl.principal.mapping.rules": RULES,
    "listener.name.asking.ssl.client.auth": "requested",
    "socket.request.max.bytes": "20000000",
    "message.max.bytes": "20000000",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    own = AUTHORITY.issue("127.0.0.1", name="broker")
    running = TlsBroker(tmp_path_factory.mktemp("broker"), AUTHORITY, own, **LISTENERS).start()
    yield running
    running.stop()


def principal_of(broker: TlsBroker, client: RawClient) -> str:
    return next(one.principal for one in broker.started.listening.connections if one.peer == client.peer)


def ask(client: RawClient) -> None:
    client.send(api_versions_request())
    assert client.receive_frame()


# Who it is


def test_a_client_without_a_certificate_is_anonymous(broker: TlsBroker) -> None:
    for listener in ("SSL", "ASKING"):
        with RawClient(Over(broker, listener)) as client:
            ask(client)
            assert principal_of(broker, client) == ANONYMOUS


def test_the_principal_is_the_name_in_the_certificate_as_java_writes_it(broker: TlsBroker) -> None:
    """S18."""
    for listener in ("MUTUAL", "ASKING"):
        with RawClient(Over(broker, listener, ALICE)) as client:
            ask(client)
            principal = principal_of(broker, client)
            assert principal.startswith(r"User:CN=alice,OU=Testing cert \#")
            assert principal.endswith(r",O=trustme v1.2.1")


def test_where_clients_log_in_a_certificate_names_nobody(broker: TlsBroker) -> None:
    """S4: it is asked for all the same."""
    with RawClient(Over(broker, "LOGIN", ALICE)) as client:
        ask(client)
        assert principal_of(broker, client) == ANONYMOUS
    with pytest.raises(ssl.SSLError, match="alert"), RawClient(Over(broker, "LOGIN")) as client:
        client.receive_frame()


def test_rules_make_a_principal_of_it(broker: TlsBroker) -> None:
    """S19."""
    with RawClient(Over(broker, "MAPPED", ALICE)) as client:
        ask(client)
        assert principal_of(broker, client) == "User:alice"


def test_whom_no_rule_matches_is_turned_away(broker: TlsBroker) -> None:
    nameless = AUTHORITY.issue("client@example.org")
    with RawClient(Over(broker, "MAPPED", nameless)) as client:
        assert client.is_closed()
    assert broker.started.listening.handshakes.failed["MAPPED"] == 1


@pytest.mark.parametrize("listener", ["MUTUAL", "ASKING"])
@pytest.mark.parametrize(
    "identity",
    [STRANGER.issue(name="mallory"), AUTHORITY.issue(name="old", until=LONG_AGO)],
    ids=["a stranger's", "expired"],
)
def test_a_certificate_that_is_not_trusted_is_refused(broker: TlsBroker, listener: str, identity: Identity) -> None:
    """S16, S17: in TLS 1.3 the client is told at its first read."""
    with pytest.raises(ssl.SSLError, match="alert"), RawClient(Over(broker, listener, identity)) as client:
        client.receive_frame()


def test_no_certificate_is_refused_where_one_is_required(broker: TlsBroker) -> None:
    with pytest.raises(ssl.SSLError, match="alert"), RawClient(Over(broker, "MUTUAL")) as client:
        client.receive_frame()


# What is said


def test_requests_that_come_together_are_answered_in_order(broker: TlsBroker) -> None:
    count = 500
    with RawClient(Over(broker)) as client:
        client.send(b"".join(api_versions_request(number) for number in range(count)))
        for number in range(count):
            assert int.from_bytes(client.receive_frame()[:4], "big") == number


def test_a_request_in_single_bytes_is_served(broker: TlsBroker) -> None:
    with RawClient(Over(broker)) as client:
        for byte in api_versions_request():
            client.send(bytes([byte]))
        assert client.receive_frame()


def test_a_large_batch_is_written_and_read(broker: TlsBroker) -> None:
    """Through a buffer that grows, and from the file in pieces."""
    values = [bytes([number]) * 3_000_000 for number in range(4)]
    with RawClient(Over(broker)) as client:
        topic = client.create_topic("large")
        now_ms = broker.parts.clocks.now_ms()
        for value in values:
            produced = client.produce("large", batch_of((None, value), now_ms=now_ms))
            assert produced.error_code == 0
        answer = client.fetch(topic, 0, max_bytes=50_000_000, partition_max_bytes=50_000_000)
        read = bytes(answer.records)
        assert len(read) > sum(map(len, values))
        assert all(value in read for value in values)
    with RawClient(broker) as plain:
        assert bytes(plain.fetch(topic, 0, max_bytes=50_000_000, partition_max_bytes=50_000_000).records) == read


def test_a_client_that_says_it_has_ended_is_answered_what_it_asked(broker: TlsBroker) -> None:
    """A half-closed socket, below TLS and by TLS's own word."""
    with RawClient(Over(broker)) as client:
        client.send(api_versions_request())
        socket.socket.shutdown(client.socket, socket.SHUT_WR)
        assert client.receive_frame()
        assert client.is_closed()


def test_a_client_that_goes_while_it_waits_for_news_is_forgotten(broker: TlsBroker) -> None:
    with RawClient(Over(broker)) as client:
        topic = client.create_topic("awaited")
        client.begin(fetch_request([(topic, [(0, 0)])], max_wait_ms=BEYOND_PATIENCE_MS))
        peer = client.peer
    broker.wait_until(lambda: all(one.peer != peer for one in broker.started.listening.connections))


def test_the_end_of_a_broker_is_told(tmp_path: Path) -> None:
    """By TLS's own word, so that a client can tell it from a cut."""
    running = TlsBroker(tmp_path / "broker", AUTHORITY, AUTHORITY.issue("127.0.0.1")).start()
    try:
        client = RawClient(Over(running))
        ask(client)
    finally:
        running.stop()
    with client:
        assert client.socket.recv(1) == b""


# Strangers


def test_plain_bytes_on_a_port_with_tls_end_the_connection_without_a_word(broker: TlsBroker) -> None:
    """S24: a client would take an alert for the size of a response."""
    with RawClient(Plainly(broker, "SSL")) as client:
        client.send(api_versions_request())
        assert client.is_closed()


def test_tls_on_a_plain_port_is_refused(broker: TlsBroker, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OSError, match=r"EOF|reset"):
        broker.connect_to("PLAINTEXT").close()
    assert "this port is plaintext" in caplog.text


def test_damaged_records_end_one_connection_and_no_other(broker: TlsBroker) -> None:
    with RawClient(Over(broker)) as other, RawClient(Over(broker)) as client:
        ask(client)
        socket.socket.sendall(client.socket, b"\x17\x03\x03\x00\x20" + b"x" * 32)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            client.socket.recv(1)
        ask(other)


def test_who_shakes_hands_slowly_leaves_others_alone(broker: TlsBroker) -> None:
    slow = [broker.connect_plainly("SSL") for _ in range(50)]
    for number, one in enumerate(slow):
        one.sendall(b"\x16\x03\x01\x02\x00"[: number % 6])
    with RawClient(Over(broker)) as client:
        ask(client)
    for one in slow:
        one.close()
    broker.wait_until(lambda: len(broker.started.listening.handshakes) == 0)
    assert broker.started.listening.quota.count == len(broker.started.listening.connections)
