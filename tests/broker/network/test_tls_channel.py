"""Bytes through TLS in both directions, on sockets that take and give little at a time (security facts S22, S23)."""

import errno
import os
import select
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from lamina.broker.network.secure_socket import SecureSocket, new_scratch
from lamina.broker.network.tls_channel import TlsChannel
from lamina.log.files import Disk
from lamina.log.lease import Lease
from tests.tls.certificates import Authority
from tests.tls.raw_records import RawRecords

AUTHORITY = Authority()
OWN = AUTHORITY.issue("localhost")
SMALL, LARGE = 1000, 5_000_000


class Pair:
    """The broker's side without waiting, the client's with."""

    def __init__(self, key_log: Path | None = None) -> None:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.num_tickets = 0
        server.options |= getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        OWN.cert.configure_cert(server)
        client = ssl.create_default_context(cadata=AUTHORITY.certificates)
        if key_log is not None:
            client.keylog_filename = str(key_log)
        theirs.settimeout(10)
        found: list[ssl.SSLSocket] = []
        shaking = threading.Thread(target=lambda: found.append(client.wrap_socket(theirs, server_hostname="localhost")))
        shaking.start()
        secured = SecureSocket(ours, server, new_scratch())
        secured.do_handshake()
        shaking.join()
        ours.setblocking(False)
        self.context, self.secured, self.client = server, ours, found[0]
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

    def send_raw(self, records: bytes) -> threading.Thread:
        """What the client sends as it is, as fast as it is taken."""

        def send() -> None:
            with suppress(OSError):
                socket.socket.sendall(self.client, records)

        sending = threading.Thread(target=send)
        sending.start()
        return sending

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


class Taking:
    """A socket that takes everything, or so much at a time, or nothing."""

    def __init__(self, pair: Pair, at_a_time: int = 1 << 30) -> None:
        self.at_a_time = at_a_time
        self.taken: list[bytes] = []
        self.calls = 0
        self._own = pair.channel._socket
        pair.channel._socket = cast(socket.socket, self)

    def send(self, data: bytes | memoryview) -> int:
        return self.sendmsg([data])

    def sendmsg(self, pieces: Iterable[bytes | memoryview]) -> int:
        self.calls += 1
        if not self.at_a_time:
            raise BlockingIOError
        self.taken.append(b"".join(map(bytes, pieces))[: self.at_a_time])
        return len(self.taken[-1])


def count_writes(pair: Pair) -> list[int]:
    """How much each call of OpenSSL encrypts."""
    written: list[int] = []
    write = pair.channel._write

    def count(data: memoryview) -> int:
        written.append(len(data))
        return write(data)

    pair.channel._write = count
    return written


def test_small_responses_leave_as_one_record(pair: Pair) -> None:
    """Each call of OpenSSL makes a record of its own, and each record costs."""
    written, taking = count_writes(pair), Taking(pair)
    pair.channel.outgoing += [b"x" * 50] * 100
    pair.channel.send()
    assert written == [5000]
    assert taking.calls == 1


def test_many_records_leave_by_one_call(pair: Pair) -> None:
    taking = Taking(pair)
    pair.channel.outgoing.append(b"x" * 131_072)
    pair.channel.send()
    assert taking.calls == 1
    assert not pair.channel.outgoing


def test_a_client_that_takes_everything_at_once_does_not_have_the_loop_for_long(tmp_path: Path, pair: Pair) -> None:
    written = count_writes(pair)
    Taking(pair)
    pair.channel.outgoing.append(lend(tmp_path / "log", LARGE, LARGE, []))
    turns = 0
    while pair.channel.outgoing:
        turns += 1
        before = sum(written)
        try:
            pair.channel.send()
        except BlockingIOError:
            assert sum(written) - before <= 1024 * 1024
    assert turns == 5
    assert max(written) == 16 * 1024
    assert sum(written) == LARGE


def test_what_could_not_be_sent_leaves_first_and_once(pair: Pair) -> None:
    """It is encrypted already, each record with a number."""
    written, taking = count_writes(pair), Taking(pair, 0)
    pair.channel.outgoing += [b"one", b"two"]
    for more in (b"three", b"four"):
        with pytest.raises(BlockingIOError):
            pair.channel.send()
        assert pair.channel.outgoing
        pair.channel.outgoing.append(more)
    assert written == [6]
    pair.channel._socket = taking._own
    assert pair.received(15) == b"onetwothreefour"
    assert written == [6, 9]


@pytest.mark.parametrize("at_a_time", [1, 1000, 16_384, 40_000])
def test_a_socket_that_takes_little_gets_everything_in_order(pair: Pair, at_a_time: int) -> None:
    sent = os.urandom(100_000 if at_a_time > 1 else 100)
    taking = Taking(pair, at_a_time)
    pair.channel.outgoing += [memoryview(sent)[:70], memoryview(sent)[70:]]
    pair.channel.send()
    reading = threading.Thread(target=lambda: taking._own.sendall(b"".join(taking.taken)))
    taking._own.setblocking(True)
    reading.start()
    got = bytearray()
    while len(got) < len(sent):
        got += pair.client.recv(1 << 20)
    reading.join()
    assert bytes(got) == sent


def test_an_end_is_told_only_where_nothing_is_left_in_the_middle_of(pair: Pair) -> None:
    Taking(pair, 0)
    pair.channel.outgoing.append(b"x" * 100)
    with pytest.raises(BlockingIOError):
        pair.channel.send()
    pair.channel.close()
    assert socket.socket.recv(pair.client, 100) == b""


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
    pair.channel._incoming.write(b"more than can ever be read")
    pair.channel._read = cast(Any, lambda *_: 16_384)
    assert pair.channel.receive_into(buffer) == 256 * 1024


def count_reads(pair: Pair) -> tuple[list[int], list[int]]:
    """How much each call of the system is asked for, and what each of OpenSSL got: 0 where nothing was whole."""
    asked, got = list[int](), list[int]()
    fill, read = pair.channel._fill, pair.channel._read

    def count_fill(most_bytes: int) -> int:
        asked.append(most_bytes)
        return fill(most_bytes)

    def count_read(most_bytes: int, into: memoryview) -> int:
        got.append(0)
        got[-1] = read(most_bytes, into)
        return got[-1]

    pair.channel._fill, pair.channel._read = count_fill, count_read
    return asked, got


def test_many_small_records_come_by_one_call(pair: Pair) -> None:
    """librdkafka makes two of each large message; a call that finds nothing costs as much as one that does."""
    for _ in range(10):
        pair.client.sendall(b"x" * 1000)
    asked, got = count_reads(pair)
    assert pair.receive(10_000) == b"x" * 10_000
    assert len(asked) == 1
    pair.client.sendall(b"y" * 2000)
    assert pair.receive(2000) == b"y" * 2000
    assert len(asked) == 2
    assert got == [1000] * 10 + [2000]


def test_a_whole_record_is_asked_for_however_little_room_there_is_and_no_more(pair: Pair) -> None:
    """What is not decrypted yet takes memory that nobody has admitted."""
    sent = os.urandom(60_000)
    pair.client.sendall(sent)
    asked, _ = count_reads(pair)
    got = bytearray()
    while len(got) < len(sent):
        got += pair.receive(10, buffer_bytes=10)
        assert pair.channel._incoming.pending < 20_000
    assert bytes(got) == sent
    assert set(asked) == {16_896}


def test_a_part_of_a_record_is_nothing_yet(pair: Pair) -> None:
    to_us = ssl.MemoryBIO()
    client = ssl.create_default_context(cadata=AUTHORITY.certificates)
    outgoing = ssl.MemoryBIO()
    speaking = client.wrap_bio(to_us, outgoing, server_hostname="localhost")
    ours, theirs = socket.socketpair()
    secured = SecureSocket(ours, pair.context, new_scratch())
    ours.setblocking(False)
    shake(speaking, outgoing, to_us, theirs, secured)
    channel = TlsChannel(secured)
    speaking.write(b"x" * 5000)
    whole = outgoing.read()
    buffer = memoryview(bytearray(10_000))
    for part in (whole[:3], whole[3:100], whole[100:-1]):
        theirs.sendall(part)
        with pytest.raises(BlockingIOError):
            channel.receive_into(buffer)
        assert not channel.has_unread
    theirs.sendall(whole[-1:])
    assert channel.receive_into(buffer) == 5000
    channel.close()
    theirs.close()


def test_what_came_with_the_end_of_the_handshake_is_there(pair: Pair) -> None:
    """No loop tells of it: the socket is empty."""
    to_us, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cadata=AUTHORITY.certificates)
    speaking = client.wrap_bio(to_us, outgoing, server_hostname="localhost")
    ours, theirs = socket.socketpair()
    secured = SecureSocket(ours, pair.context, new_scratch())
    ours.setblocking(False)
    shake(speaking, outgoing, to_us, theirs, secured, said=b"at once")
    channel = TlsChannel(secured)
    assert not select.select([ours], [], [], 0)[0]
    assert channel.has_unread
    assert channel.has_more()
    buffer = memoryview(bytearray(100))
    assert channel.receive_into(buffer) == 7
    assert not channel.has_unread
    channel.close()
    theirs.close()


def shake(
    client: ssl.SSLObject,
    outgoing: ssl.MemoryBIO,
    incoming: ssl.MemoryBIO,
    to_server: socket.socket,
    secured: SecureSocket,
    said: bytes = b"",
) -> None:
    """A handshake, with something that comes together with its end."""
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    to_server.sendall(outgoing.read())
    with suppress(ssl.SSLWantReadError):
        secured.do_handshake()
    incoming.write(to_server.recv(1 << 16))
    client.do_handshake()
    if said:
        client.write(said)
    to_server.sendall(outgoing.read())
    secured.do_handshake()


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


def test_a_client_that_asks_for_new_keys_without_end_is_not_listened_to(pair: Pair) -> None:
    """Each time OpenSSL answers, by 27 bytes that wait for the next response."""
    pair.client.sendall(b"asked")
    pair.channel._encrypted.write(b"k" * 27 * 150)
    assert pair.receive(5) == b"asked"
    pair.channel._encrypted.write(b"k" * 27 * 2)
    pair.client.sendall(b"asked")
    pair.wait_readable()
    with pytest.raises(ConnectionAbortedError):
        pair.channel.receive_into(memoryview(bytearray(100)))


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[tuple[Pair, RawRecords]]:
    """A client that encrypts by itself."""
    made = Pair(tmp_path / "keys")
    yield made, RawRecords(tmp_path / "keys")
    made.close()


def fills_of_each_call(pair: Pair, count: int, buffer_bytes: int = 1 << 18) -> tuple[bytes, list[list[int]]]:
    """So many bytes, and what was taken from the socket for it in each call."""
    calls, got, buffer = list[list[int]](), bytearray(), memoryview(bytearray(buffer_bytes))
    fill = pair.channel._fill

    def note(most_bytes: int) -> int:
        came = fill(most_bytes)
        calls[-1].append(came)
        return came

    pair.channel._fill = note
    while len(got) < count:
        pair.wait_readable()
        calls.append([])
        try:
            read = pair.channel.receive_into(buffer)
        except BlockingIOError:
            continue
        assert read
        got += buffer[:read]
    pair.channel._fill = fill
    return bytes(got), calls


def test_a_client_that_only_changes_its_keys_has_the_loop_for_a_moment_and_is_ended(
    raw: tuple[Pair, RawRecords],
) -> None:
    """OpenSSL takes all of such records that are there in one call, 12 us each."""
    pair, records = raw
    sending = pair.send_raw(b"".join(records.key_update() for _ in range(8000)))
    with pytest.raises(ConnectionAbortedError):
        fills_of_each_call(pair, 1)
    assert pair.channel._unexplained_bytes < 100 * 1024
    pair.channel.give_up()
    sending.join()


def test_what_says_little_is_taken_a_little_at_a_time(raw: tuple[Pair, RawRecords]) -> None:
    """Whoever says a word now and then stays, and does not have the loop for long."""
    pair, records = raw
    said = b"a word now and then".split(b" ")
    sending = pair.send_raw(
        b"".join(
            b"".join(records.key_update() for _ in range(1000)) + b"".join(records.data(bytes([n])) for n in word)
            for word in said
        )
    )
    got, calls = fills_of_each_call(pair, 15)
    sending.join()
    assert got == b"awordnowandthen"
    assert max(map(sum, calls)) < 50_000
    assert sum(sum(call) for call in calls if sum(call) > 2048) < 60_000


def test_records_of_one_byte_come_over_many_turns(raw: tuple[Pair, RawRecords]) -> None:
    pair, records = raw
    sent = os.urandom(5000)
    sending = pair.send_raw(b"".join(records.data(bytes([byte])) for byte in sent))
    _, got = count_reads(pair)
    received, buffer = bytearray(), memoryview(bytearray(1 << 18))
    while len(received) < len(sent):
        pair.wait_readable()
        before = len(got)
        with suppress(BlockingIOError):
            received += buffer[: pair.channel.receive_into(buffer)]
        assert len(got) - before <= 65
    sending.join()
    assert bytes(received) == sent
    assert not pair.channel.has_unread


@pytest.mark.parametrize("padding_bytes", [100, 4000, 16_383])
def test_a_client_may_pad_its_records(raw: tuple[Pair, RawRecords], padding_bytes: int) -> None:
    pair, records = raw
    sent = os.urandom(60)
    sending = pair.send_raw(b"".join(records.data(bytes([byte]), padding_bytes) for byte in sent))
    assert pair.receive(60) == sent
    sending.join()


@pytest.mark.parametrize("record_bytes", [1, 10, 60, 100, 1400, 4096, 16_384])
@pytest.mark.parametrize("buffer_bytes", [7, 1000, 1 << 18])
def test_no_client_that_says_something_in_each_record_is_slowed_down(
    raw: tuple[Pair, RawRecords], record_bytes: int, buffer_bytes: int
) -> None:
    pair, records = raw
    sent = os.urandom(min(record_bytes * 1000, 300_000) if buffer_bytes > 7 else min(record_bytes * 1000, 40_000))
    pieces = [sent[at : at + record_bytes] for at in range(0, len(sent), record_bytes)]
    sending = pair.send_raw(b"".join(map(records.data, pieces)))
    asked, _ = count_reads(pair)
    assert pair.receive(len(sent), buffer_bytes) == sent
    assert min(asked) >= 16_896
    sending.join()


def test_new_keys_now_and_then_cost_nobody_the_connection(raw: tuple[Pair, RawRecords]) -> None:
    pair, records = raw
    sent = os.urandom(6000)
    pieces = [records.key_update() + records.data(bytes([byte])) for byte in sent]
    sending = pair.send_raw(b"".join(pieces))
    asked, _ = count_reads(pair)
    assert pair.receive(len(sent)) == sent
    assert min(asked) >= 16_896
    sending.join()


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
