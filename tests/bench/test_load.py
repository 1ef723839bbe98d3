"""The load generator, over the brokers of a cluster in turn."""

import shutil
import socket
import struct
import threading
from contextlib import suppress

import pytest

from bench.load import run_load
from bench.programs import LoadError

needs_compiler = pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler")


class FakeBroker:
    """Answers every request of four bytes with an error code, and counts connections.

    It answers only once all ``awaited`` connections came, here or at others: a load may be over before that.
    """

    def __init__(self, error: int = 0, awaited: threading.Barrier | None = None) -> None:
        self.connections = 0
        self._awaited = awaited
        self._answer = struct.pack(">ih", 2, error)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()
        return str(host), int(port)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            if self._awaited is not None:
                self._awaited.wait()
            while connection.recv(8, socket.MSG_WAITALL):
                connection.sendall(self._answer)

    def close(self) -> None:
        # Wakes who waits for a connection, as closing does not.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._threads[0].join()


FRAME = struct.pack(">i4s", 4, b"what")


@needs_compiler
def test_connections_go_to_the_addresses_in_turn() -> None:
    all_came = threading.Barrier(5)
    brokers = [FakeBroker(awaited=all_came), FakeBroker(awaited=all_came)]
    try:
        done = run_load([one.address for one in brokers], [FRAME] * 5, 4, 60, count=50)
    finally:
        for broker in brokers:
            broker.close()
    assert done.answered >= 50
    assert [one.connections for one in brokers] == [3, 2]


@needs_compiler
def test_an_answer_that_tells_an_error_ends_the_load() -> None:
    brokers = [FakeBroker(), FakeBroker(error=6)]
    try:
        with pytest.raises(LoadError, match="error 6"):
            run_load([one.address for one in brokers], [FRAME] * 2, 4, 60)
    finally:
        for broker in brokers:
            broker.close()
