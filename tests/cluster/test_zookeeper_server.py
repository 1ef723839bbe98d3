"""The server's process: the one that tests share, and some of their own."""

import os
import socket
import sys
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from lamina.cluster.errors import ClusterError
from lamina.cluster.ports import free_port
from lamina.cluster.zookeeper_server import ZooKeeperServer, is_answering
from lamina.pipeline.java import find_java


def connected(server: ZooKeeperServer) -> KazooClient:
    client = KazooClient(server.address, timeout=4)
    client.start(10)
    return client


def closed(client: KazooClient) -> None:
    client.stop()
    client.close()


def test_a_server_stops_and_starts_again_on_what_its_directory_holds(tmp_path: Path) -> None:
    with ZooKeeperServer(str(tmp_path / "zookeeper"), free_port(), find_java().path) as server:
        _stop_and_start(server)


def _stop_and_start(server: ZooKeeperServer) -> None:
    client = connected(server)
    client.create("/kept", b"value")
    closed(client)
    pid = server.pid
    assert pid is not None
    assert (server.directory / "zookeeper.pid").read_text() == f"{pid}\n"
    server.stop()
    assert server.pid is None
    assert not is_answering(server.port)
    server.start()
    client = connected(server)
    assert client.get("/kept")[0] == b"value"
    closed(client)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one loopback address")
def test_it_listens_on_loopback_only(zookeeper: ZooKeeperServer) -> None:
    """Another loopback address has the port free, which it would not be if the server listened everywhere."""
    with socket.create_server(("127.0.0.2", zookeeper.port)):
        assert is_answering(zookeeper.port)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at Linux's figures")
def test_it_is_small(zookeeper: ZooKeeperServer) -> None:
    lines = Path(f"/proc/{zookeeper.pid}/status").read_text().splitlines()
    resident_kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    assert resident_kib < 150 * 1024


def test_a_second_server_on_the_same_directory_is_refused(zookeeper: ZooKeeperServer) -> None:
    second = ZooKeeperServer(str(zookeeper.directory), free_port(), find_java().path)
    with pytest.raises(ClusterError, match=rf"^zookeeper is already running \(process {zookeeper.pid}\)$"):
        second.start()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=rf"^ZooKeeper cannot listen on 127\.0\.0\.1:{port}: "):
            ZooKeeperServer(str(tmp_path), port, find_java().path).start()


def test_a_server_that_exits_at_once_is_told_with_its_log(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho no\nexit 3\n")
    os.chmod(java, 0o755)
    with pytest.raises(ClusterError, match=r"^ZooKeeper exited with status 3 at its start: see .*/zookeeper\.log$"):
        ZooKeeperServer(str(tmp_path / "zookeeper"), free_port(), str(java)).start()
    assert (tmp_path / "zookeeper" / "zookeeper.log").read_text() == "no\n"
