"""The client that makes connections over TLS, one after the other."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench.handshakes import run_handshakes
from bench.load import run_load
from bench.programs import LoadError
from bench.subjects import API_VERSIONS_V0, API_VERSIONS_V0_ERROR_AT
from tests.bench.test_load import needs_compiler
from tests.tls.certificates import Authority

AUTHORITY = Authority()
pytestmark = needs_compiler


class FakeBroker:
    """Answers every request over TLS with an error code, and counts connections."""

    def __init__(self, directory: Path, tickets: int) -> None:
        self.error = 0
        self.connections = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.num_tickets = tickets
        self._context.load_cert_chain(AUTHORITY.issue("127.0.0.1").pem(directory / "own.pem"))
        self.authority = AUTHORITY.pem(directory / "ca.pem")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()
        return str(host), int(port)

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(accepted, server_side=True) as secured:
            while secured.recv(1000):
                # In two records, as Kafka sends what it has read from a file.
                secured.sendall(struct.pack(">ii", 6, 0))
                secured.sendall(struct.pack(">h", self.error))

    def close(self) -> None:
        # Wakes who waits for a connection, as closing does not.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture(params=[0, 2])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeBroker]:
    made = FakeBroker(tmp_path, request.param)
    yield made
    made.close()


@pytest.mark.parametrize("offers_session", [False, True])
def test_each_connection_is_a_new_one_and_is_answered(broker: FakeBroker, offers_session: bool) -> None:
    done = run_handshakes(
        broker.address,
        broker.authority,
        API_VERSIONS_V0,
        API_VERSIONS_V0_ERROR_AT,
        3,
        60,
        offers_session=offers_session,
        count=30,
    )
    assert done.answered == 30 <= broker.connections
    gives_sessions = broker._context.num_tickets > 0
    assert (done.resumed > 0) == (offers_session and gives_sessions)
    assert done.agreed.startswith("TLSv1.3 TLS_AES_256_GCM_SHA384 ")
    assert done.cpu_seconds > 0


def test_an_answer_that_tells_an_error_ends_them(broker: FakeBroker) -> None:
    broker.error = 35
    with pytest.raises(LoadError, match="error 35"):
        run_handshakes(broker.address, broker.authority, API_VERSIONS_V0, API_VERSIONS_V0_ERROR_AT, 1, 60)


def test_a_broker_whom_the_authority_does_not_know_is_none(broker: FakeBroker, tmp_path: Path) -> None:
    other = Authority().pem(tmp_path / "other.pem")
    with pytest.raises(LoadError, match="certificate"):
        run_handshakes(broker.address, other, API_VERSIONS_V0, API_VERSIONS_V0_ERROR_AT, 1, 60)
    with pytest.raises(LoadError, match="certificate"):
        run_load([broker.address], [API_VERSIONS_V0], API_VERSIONS_V0_ERROR_AT, 60, authority=other)


def test_small_requests_over_tls(broker: FakeBroker) -> None:
    frames = [API_VERSIONS_V0] * 2
    done = run_load([broker.address], frames, API_VERSIONS_V0_ERROR_AT, 60, count=20, authority=broker.authority)
    assert done.answered >= 20
    assert broker.connections == 2
    assert done.agreed.startswith("TLSv1.3 TLS_AES_256_GCM_SHA384 ")
