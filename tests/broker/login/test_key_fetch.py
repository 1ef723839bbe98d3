"""Where the keys of tokens are looked for, and that no answer keeps a thread for long (S46, S82)."""

import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from lamina.broker.login.key_fetch import KeyFetch
from tests.tls.certificates import Authority

AUTHORITY = Authority()


@contextmanager
def web(handle: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            handle(self)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/keys"
        finally:
            server.shutdown()
            thread.join()


def answer(data: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    return handle


def test_keys_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a key set.json"
    file.write_bytes(b"keys")
    assert KeyFetch(file.as_uri()).read() == b"keys"


def test_keys_come_over_http() -> None:
    with web(answer(b"keys")) as url:
        assert KeyFetch(url).read() == b"keys"


def test_keys_come_in_chunks() -> None:
    with web(answer(b"2\r\nke\r\n2\r\nys\r\n0\r\n\r\n", 200, **{"Transfer-Encoding": "chunked"})) as url:
        assert KeyFetch(url).read() == b"keys"


def test_keys_come_over_https_from_who_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(AUTHORITY.certificates)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue("localhost").cert.configure_cert(context)

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            accepted, _address = listening.accept()
            try:
                with context.wrap_socket(accepted, server_side=True) as secured:
                    secured.recv(4096)
                    secured.sendall(b"HTTP/1.0 200 OK\r\n\r\nkeys")
                    secured.unwrap().close()
            except OSError:
                accepted.close()

    with socket.create_server(("localhost", 0)) as listening, ThreadPoolExecutor(1) as threads:
        serving = threads.submit(serve, listening)
        url = f"https://localhost:{listening.getsockname()[1]}/"
        with pytest.raises(OSError, match="certificate verify failed"):
            KeyFetch(url).read()
        monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
        assert KeyFetch(url).read() == b"keys"
        serving.result()


@pytest.mark.parametrize(
    "handle",
    [
        answer(b"", 404),
        answer(b"", 500),
        answer(b"", 302, Location="file:///etc/hostname"),
        answer(b"", 302, Location="http://127.0.0.1:1/elsewhere"),
        answer(b"x" * (1024 * 1024 + 1)),
        lambda request: request.wfile.write(b"nonsense\r\n\r\n"),
    ],
)
def test_what_is_no_answer_gives_no_keys(handle: Callable[[BaseHTTPRequestHandler], None]) -> None:
    with web(handle) as url, pytest.raises((OSError, ValueError)):
        KeyFetch(url).read()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"HTTP/1.1 2",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nkeys",
        b"HTTP/1.1 200 OK\r\n\r\nkeys",
    ],
)
def test_an_answer_is_given_up_wherever_it_stops(begun: bytes, scheme: str) -> None:
    """Each byte may come in time, and the next one later."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        fetch = KeyFetch(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/")
        reading = threads.submit(fetch.read)
        accepted, _ = listening.accept()
        with accepted:
            accepted.recv(4096)
            if scheme == "http":
                accepted.sendall(begun)
            fetch.give_up()
            with pytest.raises(TimeoutError, match="no whole answer"):
                reading.result(5)


def test_what_is_given_up_before_it_begins_is_not_connected_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        fetch = KeyFetch(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        fetch.give_up()
        with pytest.raises(TimeoutError):
            fetch.read()
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_name_that_nobody_resolves_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    is_asked, may_end = Event(), Event()

    def resolve(*_: object, **__: object) -> None:
        is_asked.set()
        may_end.wait(30)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with ThreadPoolExecutor(1) as threads:
        fetch = KeyFetch("http://nowhere.invalid/")
        reading = threads.submit(fetch.read)
        assert is_asked.wait(10)
        fetch.give_up()
        with pytest.raises(TimeoutError, match="no whole answer"):
            reading.result(5)
        may_end.set()


def test_a_name_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(OSError, match="no such name"):
        KeyFetch("http://nowhere.invalid/").read()


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    fetch = KeyFetch(f"http://127.0.0.1:{port}/")
    with pytest.raises(OSError, match="refused"):
        fetch.read()
    fetch.give_up()


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(bytes(1024 * 1024 + 1))
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        KeyFetch(file.as_uri()).read()
