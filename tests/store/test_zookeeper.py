"""What only a real ZooKeeper can show: lost connections and answers, credentials, TLS."""

import gc
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from lamina.clocks import SYSTEM_CLOCKS
from lamina.cluster.ports import HOST, free_port
from lamina.cluster.zookeeper_server import ZooKeeperServer
from lamina.settings.zookeeper_options import Tls, ZooKeeperOptions
from lamina.store.interface import LARGEST_BYTES, Create, Entry, Operation, OutcomeUnknown, SessionLost, Set, StoreError
from lamina.store.opening import connect
from lamina.store.zookeeper import ZooKeeperStore
from tests.store.ensembles import TIMEOUT_MS, WAIT_SECONDS, RealEnsemble, wait_until
from tests.store.gate import Gate


class Gated:
    """A store behind a gate, and another one that goes straight to the server."""

    def __init__(self, gate: Gate, ensemble: RealEnsemble) -> None:
        self.gate = gate
        self.ensemble = ensemble
        self.direct = ensemble.connect()
        options = ZooKeeperOptions((gate.address,), ensemble.chroot, TIMEOUT_MS, WAIT_SECONDS * 1000)
        self.store = ZooKeeperStore(options)

    def begin(self, *operations: Operation) -> "Future[None]":
        return self.pool.submit(self.store.transact, operations)

    pool: ThreadPoolExecutor

    def value(self, path: str) -> tuple[bytes, int] | None:
        found = self.direct.get(path)
        return None if found is None else (found.value, found.version)


@pytest.fixture
def gated(zookeeper: ZooKeeperServer, real_ensemble: RealEnsemble) -> Iterator[Gated]:
    with Gate((HOST, zookeeper.port)) as gate, ThreadPoolExecutor(1) as pool:
        case = Gated(gate, real_ensemble)
        case.pool = pool
        with closing(case.store):
            yield case
            gate.cut()


# Answers that are lost


def test_a_transaction_that_happened_though_its_answer_was_lost_has_happened_once(gated: Gated) -> None:
    gated.store.transact([Create("/a", b"0")])
    gated.gate.answers.clear()
    done = gated.begin(Set("/a", b"1", 0), Create("/e", b"", is_ephemeral=True))
    wait_until(lambda: gated.value("/a") == (b"1", 1))
    gated.gate.cut()
    assert done.result(WAIT_SECONDS) is None
    assert gated.value("/a") == (b"1", 1)
    found = gated.direct.get("/e")
    assert found is not None
    assert found.owner == gated.store.session_id


def test_a_transaction_that_never_arrived_is_sent_again_in_the_same_session(gated: Gated) -> None:
    session_id = gated.store.session_id
    gated.gate.requests.clear()
    done = gated.begin(Create("/a", b"1"))
    assert gated.gate.held_requests.wait(WAIT_SECONDS)
    gated.gate.cut()
    assert done.result(WAIT_SECONDS) is None
    assert gated.value("/a") == (b"1", 0)
    assert gated.store.session_id == session_id


def test_where_another_has_written_since_nothing_is_known(gated: Gated) -> None:
    gated.store.transact([Create("/a", b"0"), Create("/b", b"0")])
    gated.gate.answers.clear()
    done = gated.begin(Set("/a", b"1", 0), Set("/b", b"1", 0))
    wait_until(lambda: gated.value("/b") == (b"1", 1))
    gated.direct.transact([Set("/b", b"2", 1)])
    gated.gate.cut()
    with pytest.raises(OutcomeUnknown, match="others wrote where the last transaction may have happened or not"):
        done.result(WAIT_SECONDS)


def test_of_a_conflict_whose_answer_was_lost_nothing_is_known(gated: Gated) -> None:
    gated.store.transact([Create("/a", b"0")])
    gated.gate.answers.clear()
    done = gated.begin(Set("/a", b"1", 5))
    assert gated.gate.held_answers.wait(WAIT_SECONDS)
    gated.gate.cut()
    with pytest.raises(OutcomeUnknown):
        done.result(WAIT_SECONDS)
    assert gated.value("/a") == (b"0", 0)


def test_a_session_that_ends_meanwhile_is_told(gated: Gated) -> None:
    gated.gate.answers.clear()
    done = gated.begin(Create("/e", b"", is_ephemeral=True))
    wait_until(lambda: gated.value("/e") is not None)
    gated.gate.cut()
    # Reading back waits behind the gate until the session is gone.
    gated.gate.requests.clear()
    gated.ensemble.end_session(gated.store)
    gated.gate.cut()
    with pytest.raises(SessionLost):
        done.result(WAIT_SECONDS)
    assert gated.value("/e") is None


def test_reading_goes_on_over_a_lost_connection(gated: Gated) -> None:
    gated.store.transact([Create("/t", b""), *(Create(f"/t/{number}", b"") for number in range(600))])
    gated.gate.answers.clear()
    found: Future[dict[str, Entry]] = gated.pool.submit(gated.store.below, "/t")
    assert gated.gate.held_answers.wait(WAIT_SECONDS)
    gated.gate.cut()
    assert len(found.result(WAIT_SECONDS)) == 600


def test_what_changed_while_there_was_no_connection_is_told(gated: Gated) -> None:
    calls = threading.Semaphore(0)
    gated.direct.transact([Create("/w", b"")])
    gated.store.watch("/w", calls.release)
    assert calls.acquire(timeout=WAIT_SECONDS)
    for number in range(3):
        gated.gate.cut()
        gated.direct.transact([Create(f"/w/{number}", b"")])
        wait_until(lambda number=number: calls.acquire(timeout=1) and len(gated.store.children("/w")) == number + 1)  # type: ignore[misc]


# Servers that are not there


def test_no_server_is_one_sentence_within_the_given_time() -> None:
    address = f"{HOST}:{free_port()}"
    began = SYSTEM_CLOCKS.monotonic_seconds()
    refused = rf"{address} \(connection refused\); start ZooKeeper, or correct zookeeper.connect"
    with pytest.raises(StoreError, match=rf"^ZooKeeper does not answer within 0.2 s: {refused}$"):
        connect(ZooKeeperOptions((address,), session_timeout_ms=1000, connection_timeout_ms=200))
    assert SYSTEM_CLOCKS.monotonic_seconds() - began < 5


def test_a_server_that_went_away_is_told_within_the_given_time(gated: Gated) -> None:
    gated.store._patience_seconds = 0.2
    gated.gate.requests.clear()
    with pytest.raises(StoreError, match=r"^ZooKeeper at localhost:\d+"):
        gated.store.get("/a")
    with pytest.raises(OutcomeUnknown, match="may have happened or not"):
        gated.store.transact([Create("/a", b"")])


def test_a_closed_store_is_told_at_once(real_ensemble: RealEnsemble) -> None:
    store = real_ensemble.connect()
    store.close()
    with pytest.raises(StoreError, match=r"^the connection to ZooKeeper at .* is closed$"):
        store.get("/a")


def test_what_a_server_would_not_take_is_refused_here(real_ensemble: RealEnsemble) -> None:
    with pytest.raises(StoreError, match=r"^/a: a transaction of \d+ bytes is too large for ZooKeeper at"):
        real_ensemble.connect().transact([Create("/a", bytes(LARGEST_BYTES))])


# Security


def test_with_acls_only_the_same_credentials_can_write(real_ensemble: RealEnsemble) -> None:
    own = real_ensemble.connect(digest="lamina:secret", sets_acl=True)
    own.transact([Create("/a", b"0")])
    own.transact([Set("/a", b"1", 0)])
    stranger = real_ensemble.connect(digest="lamina:guess")
    found = stranger.get("/a")
    assert found is not None
    assert found.value == b"1"
    with pytest.raises(StoreError, match="NoAuth"):
        stranger.transact([Set("/a", b"2", 1)])
    with pytest.raises(StoreError, match="NoAuth"):
        stranger.transact([Create("/b", b"")])
    own.transact([Set("/a", b"2", 1)])


def test_a_file_for_tls_that_is_not_there_is_named() -> None:
    tls = Tls("/none/ca.pem", None, None, checks_hostname=True)
    with pytest.raises(
        StoreError, match=r"^/none/ca\.pem, which is to secure the connection to ZooKeeper, cannot be read$"
    ):
        connect(ZooKeeperOptions(("localhost:1",), tls=tls))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_connection_over_tls_is_to_a_server_that_is_trusted(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Gate((HOST, zookeeper.port), context) as gate:

        def options(trusted: str | None, patience_ms: int) -> ZooKeeperOptions:
            tls = Tls(trusted, None, None, checks_hostname=True)
            return ZooKeeperOptions((gate.address,), "/tls", TIMEOUT_MS, patience_ms, tls=tls)

        with closing(connect(options(str(certificate), WAIT_SECONDS * 1000))) as store:
            assert store.children("") == []
        with pytest.raises(StoreError, match="does not answer"):
            connect(options(None, 500))
        gc.collect()  # kazoo leaves the sockets to it on which TLS failed
