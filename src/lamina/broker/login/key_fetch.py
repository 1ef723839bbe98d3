"""One look at where the keys of an issuer are: a file, or what is answered over HTTP or HTTPS.

Owns the connection, and that it can be given up in whatever it waits for: sockets have a timeout for each byte, not for
an answer. The address is the settings' alone: a redirection is not followed, lest the keys come from elsewhere (S82).
Must not know what is read, nor when.
"""

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener, url2pathname

from lamina.security.signing_keys import KeySetError

_MOST_BYTES = 1024 * 1024
_RECEIVE_SECONDS = 10.0


class KeyFetch:
    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = Lock()
        self._addresses: SimpleQueue[Sequence[_Address] | Exception] = SimpleQueue()
        self._is_given_up = False
        self._held: socket.socket | None = None
        """The connection once more: TLS takes the first one away."""

    def read(self) -> bytes:
        """For a thread. Raises OSError or ValueError; TimeoutError where it was given up."""
        try:
            data = self._read()
        except (OSError, HTTPException) as error:
            self._stop_if_given_up()
            if isinstance(error, HTTPException):
                raise OSError(f"no answer of HTTP: {type(error).__name__}") from error
            raise
        finally:
            self._hold(None)
        # A connection that is shut down looks like an answer that has ended.
        self._stop_if_given_up()
        if len(data) > _MOST_BYTES:
            raise KeySetError(f"more than {_MOST_BYTES} bytes")
        return data

    def give_up(self) -> None:
        """End :meth:`read` now, wherever it is; from any thread, and at any time."""
        with self._lock:
            self._is_given_up = True
            self._addresses.put(_given_up())
            if self._held is not None:
                with suppress(OSError):
                    self._held.shutdown(socket.SHUT_RDWR)

    def _stop_if_given_up(self) -> None:
        if self._is_given_up:
            raise _given_up()

    def _read(self) -> bytes:
        parts = urlsplit(self._url)
        if parts.scheme == "file":
            with Path(url2pathname(parts.path)).open("rb") as file:
                return file.read(_MOST_BYTES + 1)
        opener = build_opener(_NoRedirection(), _Http(self._connect), _Https(self._connect))
        with opener.open(self._url, timeout=_RECEIVE_SECONDS) as response:
            data: bytes = response.read(_MOST_BYTES + 1)
            return data

    def _connect(self, address: tuple[str, int], timeout: float, _: object) -> socket.socket:
        refusal = OSError("there is no such address")
        for family, kind, protocol, _name, found in self._resolved(address):
            connecting = socket.socket(family, kind, protocol)
            try:
                connecting.settimeout(timeout)
                self._hold(connecting.dup())
                self._stop_if_given_up()
                connecting.connect(found)
            except OSError as error:
                connecting.close()
                self._stop_if_given_up()
                refusal = error
            else:
                return connecting
        raise refusal

    def _resolved(self, address: tuple[str, int]) -> "Sequence[_Address]":
        """A resolver ends in its own time, and nothing can end it sooner: nobody waits for its thread."""

        def resolve() -> None:
            try:
                self._addresses.put(socket.getaddrinfo(*address, type=socket.SOCK_STREAM))
            except Exception as error:
                self._addresses.put(error)

        Thread(target=resolve, name="lamina-keys-name", daemon=True).start()
        found = self._addresses.get()
        if isinstance(found, Exception):
            raise found
        return found

    def _hold(self, held: socket.socket | None) -> None:
        with self._lock:
            if self._held is not None:
                self._held.close()
            self._held = held


def _given_up() -> TimeoutError:
    return TimeoutError("no whole answer came in time")


_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
_Connect = Callable[[tuple[str, int], float, object], socket.socket]


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """None follows no redirection, which is an error then."""
        return


class _Http(HTTPHandler):
    def __init__(self, connect: _Connect) -> None:
        super().__init__()
        self._connect = connect

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_HttpConnection, connect=self._connect), req)


class _Https(HTTPSHandler):
    def __init__(self, connect: _Connect) -> None:
        super().__init__()
        self._connect = connect

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_HttpsConnection, connect=self._connect), req)


class _HttpConnection(HTTPConnection):
    def __init__(self, host: str, connect: _Connect, **others: Any) -> None:
        super().__init__(host, **others)
        self._create_connection = connect


class _HttpsConnection(HTTPSConnection):
    def __init__(self, host: str, connect: _Connect, **others: Any) -> None:
        super().__init__(host, **others)
        self._create_connection = connect
