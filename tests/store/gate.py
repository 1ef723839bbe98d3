"""A gate in front of a server: bytes pass it, or wait in it, or are lost when it is slammed."""

import socket
import ssl
import threading
from contextlib import suppress
from types import TracebackType


class Gate:
    """Each direction can be shut by itself. Whatever waits in a shut direction is lost when connections are cut."""

    def __init__(self, target: tuple[str, int], context: ssl.SSLContext | None = None) -> None:
        """With a context it speaks TLS to its clients."""
        self._target = target
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.requests = threading.Event()
        self.answers = threading.Event()
        self.requests.set()
        self.answers.set()
        self.held_answers = threading.Event()
        """Set when an answer waits."""
        self.held_requests = threading.Event()
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"localhost:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """End all connections, and let everything pass on the next ones."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            _close(each)
        self.requests.set()
        self.answers.set()

    def __enter__(self) -> "Gate":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
                if self._context is not None:
                    client = self._context.wrap_socket(client, server_side=True)
                server = socket.create_connection(self._target)
            except OSError:
                continue
            pair = [client, server]
            self._sockets += pair
            for source, sink, passes, held in (
                (client, server, self.requests, self.held_requests),
                (server, client, self.answers, self.held_answers),
            ):
                threading.Thread(target=self._pump, args=(source, sink, passes, held, pair), daemon=True).start()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        passes: threading.Event,
        held: threading.Event,
        pair: list[socket.socket],
    ) -> None:
        try:
            while data := source.recv(65536):
                if not passes.is_set():
                    held.set()
                    passes.wait()
                    if source.fileno() < 0:
                        return
                sink.sendall(data)
        except OSError:
            pass
        for each in pair:
            _close(each)


def _close(opened: socket.socket) -> None:
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)
    opened.close()
