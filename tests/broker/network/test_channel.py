"""Responses with ranges of files on their way out, and what happens when a file cannot be read."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.network.channel import PlainChannel
from lamina.errors import StorageError
from lamina.log.files import Disk, File
from lamina.log.lease import Lease

SMALL, LARGE = 1000, 200_000
"""A range that is read, and one that ``sendfile`` takes."""


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    with ours, theirs:
        yield ours, theirs


class UnreadableFile(File):
    def pread(self, size_bytes: int, position: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def send(self, socket_fd: int, position: int, size_bytes: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def lend(path: Path, size_bytes: int, promised_bytes: int, given_back: list[str]) -> Lease:
    path.write_bytes(b"r" * size_bytes)
    return Lease(Disk().open(str(path)), 0, promised_bytes, lambda: given_back.append("range"))


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
def test_a_range_that_is_there_leaves_between_what_is_around_it(
    tmp_path: Path, sockets: tuple[socket.socket, socket.socket], size_bytes: int
) -> None:
    ours, theirs = sockets
    given_back: list[str] = []
    channel = PlainChannel(ours)
    channel.outgoing += [b"head", lend(tmp_path / "log", size_bytes, size_bytes, given_back), b"next"]
    channel.send()
    received = b""
    while len(received) < size_bytes + 8:
        received += theirs.recv(1 << 20)
    assert received == b"head" + b"r" * size_bytes + b"next"
    assert given_back == ["range"]


@pytest.mark.parametrize("promised_bytes", [SMALL, LARGE])
def test_after_a_file_that_is_shorter_than_promised_nothing_follows(
    tmp_path: Path,
    sockets: tuple[socket.socket, socket.socket],
    promised_bytes: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next frame would be taken for the rest of this one."""
    ours, theirs = sockets
    given_back: list[str] = []
    channel = PlainChannel(ours)
    channel.outgoing += [b"head", lend(tmp_path / "log", promised_bytes - 7, promised_bytes, given_back), b"next"]
    with pytest.raises(OSError, match="a range of a log cannot be read"):
        channel.send()
    channel.give_up()
    channel.outgoing += [b"next"]
    with pytest.raises(BrokenPipeError):
        channel.send()
    channel.close()
    received = b""
    while piece := theirs.recv(1 << 20):
        received += piece
    assert b"next" not in received
    assert given_back == ["range"]
    (told,) = caplog.records
    assert "a response is cut short" in told.getMessage()
    assert told.levelname == "WARNING", "a log may be truncated under its readers"


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
def test_a_disk_error_ends_the_connection_and_is_told_to_the_log(
    tmp_path: Path, sockets: tuple[socket.socket, socket.socket], size_bytes: int
) -> None:
    told: list[OSError] = []

    def fail(error: OSError) -> StorageError:
        told.append(error)
        return StorageError("t-0 is offline")

    channel = PlainChannel(sockets[0])
    channel.outgoing += [Lease(UnreadableFile("log", -1), 0, size_bytes, lambda: None).reports_to(fail), b"next"]
    with pytest.raises(OSError, match="a range of a log cannot be read"):
        channel.send()
    assert [error.errno for error in told] == [errno.EIO]


def test_a_client_that_went_away_is_no_error_of_the_disk(
    tmp_path: Path, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = sockets
    theirs.close()
    told: list[OSError] = []
    channel = PlainChannel(ours)
    lease = lend(tmp_path / "log", LARGE, LARGE, [])

    def fail(error: OSError) -> StorageError:
        told.append(error)
        return StorageError("t-0 is offline")

    channel.outgoing += [lease.reports_to(fail)]
    with pytest.raises(BrokenPipeError):
        channel.send()
    assert told == []
