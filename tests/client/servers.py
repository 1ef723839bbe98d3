"""Servers that are no brokers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def a_server_that_says(answer: bytes) -> Iterator[str]:
    """Says it to everybody who sends something, and hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(1024)
                    connection.sendall(answer)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
