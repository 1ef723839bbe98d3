"""The admin listener over TLS: who trusts it reads it, with the tools too, and its certificate can change (S6)."""

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from lamina.broker.admin import secured_sockets
from lamina.broker.admin.serving import MAX_CONNECTIONS
from lamina.client.admin_listener import find_admin_listener
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.settings.definition import SettingError
from lamina.settings.listeners import Listener, admin_listeners
from lamina.settings.resolve import resolve_broker
from tests.broker.tls import TlsBroker
from tests.tls.certificates import Authority

AUTHORITY = Authority()
OWN = AUTHORITY.issue("127.0.0.1", name="broker")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TlsBroker]:
    own = {
        "lamina.admin.listeners": "https://127.0.0.1:0,127.0.0.1:0",
        "lamina.admin.authentication": "none",
        "ssl.allow.dn.changes": "true",
        "ssl.client.auth": "required",  # Of SSL listeners: it needs the prefix for others (S4).
    }
    running = TlsBroker(tmp_path / "broker", AUTHORITY, OWN, **own).start()
    yield running
    running.stop()


def secured(broker: TlsBroker) -> Listener:
    return next(one for one in broker.started.admin if one.protocol == "HTTPS")


def connected(broker: TlsBroker) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cadata=AUTHORITY.certificates)
    return http.client.HTTPSConnection("127.0.0.1", secured(broker).port, context=context, timeout=30)


def asked(connection: http.client.HTTPConnection) -> Any:
    with closing(connection):
        connection.request("GET", "/v1/brokers")
        with connection.getresponse() as answer:
            assert answer.status == 200
            return json.load(answer)


def test_who_trusts_it_reads_the_same_as_over_http(broker: TlsBroker) -> None:
    plain = next(one for one in broker.started.admin if one.protocol == "HTTP")
    told = asked(connected(broker))
    assert told.keys() == asked(http.client.HTTPConnection("127.0.0.1", plain.port, timeout=30)).keys()


def test_another_certificate_is_shown_to_those_who_come_later(broker: TlsBroker) -> None:
    def shown() -> x509.Certificate:
        connection = connected(broker)
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        der = connection.sock.getpeercert(binary_form=True)
        connection.close()
        assert der is not None
        return x509.load_der_x509_certificate(der)

    assert shown() == OWN.certificate
    new = AUTHORITY.issue("127.0.0.1", name="broker")
    new.pem(broker.key_store)
    metadata = broker.parts.metadata
    broker.run(metadata.key_material.refresh(metadata.settings))
    assert shown() == new.certificate


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_is_trusted_no_more_resumes_no_session(tmp_path: Path, version: ssl.TLSVersion) -> None:
    own = {
        "lamina.admin.listeners": "https://127.0.0.1:0",
        "lamina.admin.authentication": "none",
        "listener.name.admin.ssl.client.auth": "required",
    }
    stranger = Authority()
    running = TlsBroker(tmp_path / "broker", AUTHORITY, OWN, **own).start()
    context = ssl.create_default_context(cadata=AUTHORITY.certificates)
    context.maximum_version = version
    AUTHORITY.issue(name="alice").cert.configure_cert(context)

    def ask(session: ssl.SSLSession | None = None) -> ssl.SSLSession | None:
        plain = socket.create_connection(("127.0.0.1", secured(running).port), timeout=30)
        with context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not client.recv(1):
                raise ConnectionResetError
            return client.session

    try:
        session = ask(ask())
        running.trust_store.write_text(stranger.certificates)
        metadata = running.parts.metadata
        running.run(metadata.key_material.refresh(metadata.settings))
        for resumed in (session, None):
            with pytest.raises(OSError):  # noqa: PT011
                ask(resumed)
    finally:
        running.stop()


def test_the_tools_find_it_and_trust_whom_their_properties_name(broker: TlsBroker, tmp_path: Path) -> None:
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_text(OWN.chain)
    key.write_text(OWN.key())
    found = find_admin_listener(Cluster(broker.address), "1", None)
    assert found.address == secured(broker).url
    with pytest.raises(ClientError, match="certificate verify failed"):
        found.get("v1", "brokers")
    trusted = {"security.protocol": "PLAINTEXT", "ssl.ca.location": str(broker.trust_store)}
    trusting = Cluster(broker.address, trusted)
    assert find_admin_listener(trusting, "1", None).get("v1", "brokers")


def test_clients_may_be_asked_for_certificates(tmp_path: Path) -> None:
    given = {"lamina.admin.listeners": "https://127.0.0.1:0", "listener.name.admin.ssl.client.auth": "required"}
    running = TlsBroker(tmp_path / "broker", AUTHORITY, OWN, **given).start()
    try:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            asked(connected(running))
    finally:
        running.stop()


def test_a_certificate_stands_for_a_token(tmp_path: Path) -> None:
    """S90: who is named by the settings has a role; any other certificate has none."""
    given = {
        "lamina.admin.listeners": "https://127.0.0.1:0",
        "lamina.admin.authentication": "required",
        "listener.name.admin.ssl.client.auth": "requested",
        "listener.name.admin.ssl.principal.mapping.rules": "RULE:^CN=([^,]*),.*$/$1/",
        "lamina.admin.viewers": "User:monitor",
        "lamina.admin.operators": "User:operator;User:another",
    }
    running = TlsBroker(tmp_path / "broker", AUTHORITY, OWN, **given).start()

    def status(name: str | None, method: str) -> int:
        context = ssl.create_default_context(cadata=AUTHORITY.certificates)
        if name is not None:
            issued = AUTHORITY.issue("127.0.0.1", name=name)
            (tmp_path / "chain.pem").write_text(issued.chain)
            (tmp_path / "key.pem").write_text(issued.key())
            context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
        port = secured(running).port
        with closing(http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)) as connection:
            path = "/v1/topics" if method == "GET" else "/v1/log-levels/lamina.wire"
            connection.request(method, path, None if method == "GET" else b'{"level": "info"}')
            return connection.getresponse().status

    try:
        assert [status(name, "GET") for name in (None, "stranger", "monitor", "operator")] == [401, 401, 200, 200]
        assert [status(name, "PUT") for name in (None, "stranger", "monitor", "operator")] == [401, 401, 401, 200]
    finally:
        running.stop()


def test_plain_http_on_it_is_closed_and_no_other_is_held_up(broker: TlsBroker) -> None:
    plain = http.client.HTTPConnection("127.0.0.1", secured(broker).port, timeout=30)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        asked(plain)
    assert asked(connected(broker))


def test_who_says_nothing_has_a_place_only_until_others_want_it(
    broker: TlsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S85: connections are counted before their handshake, so that silent ones take few descriptors."""
    monkeypatch.setattr(secured_sockets, "HANDSHAKE_SECONDS", 600)
    assert asked(connected(broker))
    before = len(os.listdir("/dev/fd"))
    strangers = [
        socket.create_connection(("127.0.0.1", secured(broker).port), timeout=30) for _ in range(3 * MAX_CONNECTIONS)
    ]
    try:
        for half, stranger in enumerate(strangers[MAX_CONNECTIONS:]):
            stranger.sendall(b"\x16\x03\x01\x02\x00\x01"[: half % 7])
        for stranger in strangers[: 2 * MAX_CONNECTIONS]:
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
        assert len(os.listdir("/dev/fd")) - before <= len(strangers) + MAX_CONNECTIONS
        assert asked(connected(broker))
    finally:
        for stranger in strangers:
            stranger.close()


def test_no_more_than_its_places_are_served(broker: TlsBroker) -> None:
    held = [connected(broker) for _ in range(MAX_CONNECTIONS)]
    try:
        for connection in held:
            connection.connect()
        one_more = connected(broker)
        with closing(one_more), suppress(http.client.HTTPException, OSError):
            one_more.request("GET", "/v1/brokers")
            with one_more.getresponse() as answer:
                assert answer.status == 503
    finally:
        for connection in held:
            connection.close()


def test_few_descriptors_are_left_to_the_logs(broker: TlsBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secured_sockets, "connection_descriptors", lambda _: 3)
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(connected(broker))


def test_settings() -> None:
    files = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/k"}
    given = {"lamina.admin.listeners": "https://127.0.0.1:9644,http://127.0.0.1:9645"}
    found = admin_listeners(resolve_broker(file={**given, **files}))
    assert [one.url for one in found] == ["https://127.0.0.1:9644", "127.0.0.1:9645"]
    with pytest.raises(SettingError, match="listener ADMIN: HTTPS needs a certificate and its private key"):
        resolve_broker(file=given)
    clash = {"listeners": "ADMIN://:1", "listener.security.protocol.map": "ADMIN:PLAINTEXT"}
    with pytest.raises(SettingError, match="has the name of the admin listener"):
        resolve_broker(file={**given, **files, **clash})
