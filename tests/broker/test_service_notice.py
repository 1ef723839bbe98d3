"""What systemd is told, over a real datagram socket, by a notice alone and by a whole broker."""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator

import pytest

from lamina.broker.service_notice import ServiceNotice
from tests.broker.process import BrokerProcess


class Manager:
    """What listens where systemd would."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        self.socket.settimeout(30)
        self.address = address

    def hear(self) -> list[str]:
        return self.socket.recv(4096).decode().split("\n")


@pytest.fixture
def manager() -> Iterator[Manager]:
    # Not pytest's directory: the path of such a socket has room for about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="lamina-notify-") as directory:
        manager = Manager(f"{directory}/notify")
        yield manager
        manager.socket.close()


def test_without_a_socket_nothing_is_told() -> None:
    for address in ("", "relative/path", "vsock:2:1234"):
        notice = ServiceNotice({"NOTIFY_SOCKET": address})
        notice.opening(0, 1)
        notice.stopping()
        notice.ended()


def test_a_socket_that_nobody_listens_on_does_no_harm(manager: Manager) -> None:
    manager.socket.close()
    ServiceNotice({"NOTIFY_SOCKET": manager.address}).stopping()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names without a file")
def test_a_name_without_a_file_is_found_too() -> None:
    manager = Manager(f"@lamina-test-{os.getpid()}")
    ServiceNotice({"NOTIFY_SOCKET": manager.address}).stopping()
    assert manager.hear()[0] == "STOPPING=1"
    manager.socket.close()


@pytest.mark.parametrize(("wanted", "pid", "is_given"), [("20000", "", True), ("20000", "1", False), ("", "", False)])
def test_a_sign_of_life_is_given_by_the_loop_if_it_is_wanted_of_this_process(
    manager: Manager, wanted: str, pid: str, is_given: bool
) -> None:
    async def run() -> list[str]:
        notice = ServiceNotice({"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": wanted, "WATCHDOG_PID": pid})
        notice.ready("serving", asyncio.get_running_loop())
        heard = [*manager.hear()]
        if is_given:
            heard += await asyncio.to_thread(manager.hear)
            heard += await asyncio.to_thread(manager.hear)
        notice.ended()
        notice.stopping()
        return [*heard, *manager.hear()[:1]]

    signs = ["WATCHDOG=1"] * 2 if is_given else []
    assert asyncio.run(run()) == ["READY=1", "STATUS=serving", *signs, "STOPPING=1"]


def test_a_broker_tells_when_it_is_ready_and_when_it_stops(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, own_broker: Callable[..., BrokerProcess]
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    broker = own_broker()
    assert manager.hear() == ["READY=1", "STATUS=serving 0 partitions"]
    with broker.connect():
        broker.stop()
    assert manager.hear()[0] == "STOPPING=1"
