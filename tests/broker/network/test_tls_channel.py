"""Bytes through TLS in both directions, on sockets that take and give little at a time (security facts S22, S23)."""

import errno
import os
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from lamina.broker.network.tls_channel import TlsChannel
from lamina.log.files import Disk
from lamina.log.lease import Lease
from tests.tls.certificates import Authority

AUTHORITY = Authority()
OWN = AUTHORITY.issue("localhost")
SMALL, LARGE = 1000, 5_000_000


class Pair:
    """The broker's side without waiting, the client's with."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.num_tickets = 0
        server.options |= getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        OWN.cert.configure_cert(server)
        client = ssl.create_default_context(cadata=AUTHORITY.certificates)
        theirs.settimeout(10)
        found: list[ssl.SSLSocket] = []
        shaking = threading.Thread(target=lambda: found.append(client.wrap_socket(theirs, server_hostname="localhost")))
        shaking.start()
        secured = server.wrap_socket(ours, server_side=True)
        shaking.join()
        secured.setblocking(False)
        self.secured, self.client = secured, found[0]
        self.channel = TlsChannel(secured)

    def received(self, count: int) -> bytes:
        """What the client reads while the channel sends as it can."""
        pieces: list[bytes] = []

        def read() -> None:
            left = count
            while left and (piece := self.client.recv(min(left, 1 << 20))):
                pieces.append(piece)
                left -= len(piece)

        reading = threading.Thread(target=read)
        reading.start()
        try:
            while self.channel.outgoing:
                with suppress(BlockingIOError):
                    self.channel.send()
                assert select.select([], [self.secured], [], 10)[1]
        except OSError:
            socket.socket.shutdown(self.client, socket.SHUT_RDWR)
            raise
        finally:
            reading.join()
        return b"".join(pieces)

    def wait_readable(self) -> None:
        assert self.channel.has_unread or select.select([self.secured], [], [], 10)[0]

    def receive(self, count: int, buffer_bytes: int = 1 << 20) -> bytes:
        """So many bytes through the channel."""
        buffer, got = memoryview(bytearray(buffer_bytes)), bytearray()
        while len(got) < count:
            self.wait_readable()
            try:
                read = self.channel.receive_into(buffer)
            except BlockingIOError:
                continue
            assert read
            got += buffer[:read]
        return bytes(got)

    def close(self) -> None:
        self.channel.close()
        self.client.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def lend(path: Path, size_bytes: int, promised_bytes: int, given_back: list[str]) -> Lease:
    path.write_bytes(os.urandom(size_bytes))
    return Lease(Disk().open(str(path)), 0, promised_bytes, lambda: given_back.append("range"))


# Out


@pytest.mark.parametrize("size_bytes", [1, SMALL, 128 * 1024, LARGE])
def test_a_range_leaves_between_what_is_around_it(tmp_path: Path, pair: Pair, size_bytes: int) -> None:
    given_back: list[str] = []
    lease = lend(tmp_path / "log", size_bytes, size_bytes, given_back)
    expected = b"head" + (tmp_path / "log").read_bytes() + b"next"
    pair.channel.outgoing += [b"head", lease, b"next"]
    assert pair.received(len(expected)) == expected
    assert given_back == ["range"]


def test_pieces_of_every_kind_and_size_keep_their_order(pair: Pair) -> None:
    pieces = [
        b"a" * 10,
        bytearray(b"b" * 300_000),
        b"",
        memoryview(b"c" * 131_072),
        *[bytes([n]) * n for n in range(200)],
    ]
    expected = b"".join(map(bytes, pieces))
    pair.channel.outgoing += pieces
    assert pair.received(len(expected)) == expected


def test_an_empty_piece_is_no_end(pair: Pair) -> None:
    pair.channel.outgoing.append(b"")
    pair.channel.send()
    assert not pair.channel.outgoing


def test_small_responses_leave_as_one_record(pair: Pair) -> None:
    """Each call of OpenSSL makes a record of its own, and each record costs."""
    written: list[int] = []
    write = pair.channel._write

    def count(data: memoryview) -> int:
        written.append(len(data))
        return write(data)

    pair.channel._write = count
    pair.channel.outgoing += [b"x" * 50] * 100
    pair.channel.send()
    assert written == [5000]


def test_a_client_that_takes_everything_at_once_does_not_have_the_loop_for_long(tmp_path: Path, pair: Pair) -> None:
    taken: list[int] = []

    def take(data: memoryview) -> int:
        taken.append(len(data))
        return len(data)

    pair.channel._write = take
    pair.channel.outgoing.append(lend(tmp_path / "log", LARGE, LARGE, []))
    turns = 0
    while pair.channel.outgoing:
        turns += 1
        before = sum(taken)
        try:
            pair.channel.send()
        except BlockingIOError:
            assert sum(taken) - before <= 1024 * 1024
    assert turns == 5
    assert max(taken) == 128 * 1024
    assert sum(taken) == LARGE


def test_what_could_not_be_sent_is_offered_again_unchanged(pair: Pair) -> None:
    """OpenSSL refuses anything else."""
    offered: list[bytes] = []

    def refuse(data: memoryview) -> int:
        offered.append(bytes(data))
        raise ssl.SSLWantWriteError

    pair.channel._write = refuse
    pair.channel.outgoing += [b"one", b"two"]
    for more in (b"three", b"four"):
        with pytest.raises(BlockingIOError):
            pair.channel.send()
        pair.channel.outgoing.append(more)
    assert offered == [b"onetwo"] * 2
    assert [bytes(cast(bytes, piece)) for piece in pair.channel.outgoing] == [b"onetwo", b"three", b"four"]


@pytest.mark.parametrize("promised_bytes", [SMALL, LARGE])
def test_after_a_file_that_is_shorter_than_promised_nothing_follows(
    tmp_path: Path, pair: Pair, promised_bytes: int
) -> None:
    given_back: list[str] = []
    lease = lend(tmp_path / "log", promised_bytes - 7, promised_bytes, given_back)
    pair.channel.outgoing += [b"head", lease, b"next"]
    with pytest.raises(OSError, match="a range of a log cannot be read") as caught:
        pair.received(len(lease) + 8)
    assert caught.value.errno == errno.EIO
    pair.channel.give_up()
    assert given_back == ["range"]


# In


def test_what_one_buffer_has_no_room_for_is_said_to_be_there(pair: Pair) -> None:
    """S23: it is decrypted, and the socket is empty."""
    pair.client.sendall(b"x" * 100)
    assert pair.receive(40, buffer_bytes=40) == b"x" * 40
    assert pair.channel.has_unread
    assert pair.channel.has_more()
    assert not select.select([pair.secured], [], [], 0)[0]
    assert pair.receive(60) == b"x" * 60
    assert not pair.channel.has_unread


def test_many_records_are_received_together_but_not_without_end(pair: Pair) -> None:
    sent = os.urandom(2_000_000)
    sending = threading.Thread(target=lambda: pair.client.sendall(sent))
    sending.start()
    assert pair.receive(len(sent), buffer_bytes=3_000_000) == sent
    sending.join()
    buffer = memoryview(bytearray(3_000_000))
    given = iter([16_384] * 1000)
    pair.channel._read = lambda _: next(given)
    assert pair.channel.receive_into(buffer) == 256 * 1024


def test_nothing_is_there_yet(pair: Pair) -> None:
    with pytest.raises(BlockingIOError):
        pair.channel.receive_into(memoryview(bytearray(10)))
    with pytest.raises(BlockingIOError):
        pair.channel.has_more()


@pytest.mark.parametrize("is_told", [True, False])
def test_the_end_behind_bytes_is_seen_whether_tls_tells_it_or_not(pair: Pair, is_told: bool) -> None:
    pair.client.sendall(b"last")
    if is_told:
        pair.client.settimeout(0)
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.unwrap()
    else:
        socket.socket.shutdown(pair.client, socket.SHUT_WR)
    assert pair.receive(4) == b"last"
    assert pair.channel.has_unread or select.select([pair.secured], [], [], 10)[0]
    assert pair.channel.receive_into(memoryview(bytearray(10))) == 0
    assert not pair.channel.has_more()


def test_a_damaged_record_is_an_error(pair: Pair) -> None:
    socket.socket.sendall(pair.client, b"\x17\x03\x03\x00\x20" + b"x" * 32)
    pair.wait_readable()
    with pytest.raises(ssl.SSLError):
        pair.channel.receive_into(memoryview(bytearray(10)))
    assert pair.channel.has_unread


def test_after_giving_up_no_raw_byte_is_taken_for_what_was_sent(pair: Pair) -> None:
    """What has come is still decrypted."""
    pair.client.sendall(b"asked before")
    pair.wait_readable()
    pair.channel.give_up()
    assert pair.receive(12) == b"asked before"
    assert pair.channel.receive_into(memoryview(bytearray(100))) == 0
    pair.channel.outgoing += [b"late"]
    with pytest.raises(OSError):  # noqa: PT011
        pair.channel.send()


def test_the_end_is_told_by_tls(pair: Pair) -> None:
    pair.channel.close()
    assert pair.client.recv(1) == b""
