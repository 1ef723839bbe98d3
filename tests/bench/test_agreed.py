"""What is read of a TLS handshake by who stands between."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from bench.agreed import agreed, read_server_hello
from bench.load import Address
from bench.small_requests import WrongAnswer
from tests.tls.certificates import Authority

AUTHORITY = Authority()


def serve_once(listening: socket.socket, context: ssl.SSLContext) -> None:
    accepted, _ = listening.accept()
    with context.wrap_socket(accepted, server_side=True) as secured:
        secured.recv(1)


@pytest.mark.parametrize(
    ("version", "suite"),
    [(ssl.TLSVersion.TLSv1_3, "TLSv1.3 TLS_AES_256_GCM_SHA384"), (ssl.TLSVersion.TLSv1_2, "TLSv1.2 0xc02c")],
)
def test_version_and_suite_are_those_that_both_sides_speak(tmp_path: Path, version: ssl.TLSVersion, suite: str) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(AUTHORITY.issue("127.0.0.1").pem(tmp_path / "own.pem"))
    server.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    client = ssl.create_default_context(cadata=AUTHORITY.certificates)
    client.maximum_version = version
    listening = socket.create_server(("127.0.0.1", 0))
    serving = threading.Thread(target=serve_once, args=(listening, server))
    serving.start()

    def connect(through: Address) -> None:
        with client.wrap_socket(socket.create_connection(through), server_hostname="127.0.0.1") as secured:
            secured.sendall(b"x")

    with listening:
        host, port = listening.getsockname()
        assert agreed((host, port), connect) == suite
        serving.join()


def test_who_never_connects_has_agreed_on_nothing() -> None:
    with pytest.raises(WrongAnswer, match="not whole"):
        agreed(("127.0.0.1", 1), lambda _: None)


@pytest.mark.parametrize(
    "came", [b"", b"\x15\x03\x03\x00\x02\x02\x46", b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03"]
)
def test_what_is_no_whole_server_hello_is_refused(came: bytes) -> None:
    with pytest.raises(WrongAnswer):
        read_server_hello(came)
