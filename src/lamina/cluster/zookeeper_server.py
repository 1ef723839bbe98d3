"""A real ZooKeeper server as a process beside the brokers, from the jars that PySpark brings.

Owns the process: its files in one directory (``zoo.cfg``, ``data``, ``zookeeper.log``), its small memory, that it
listens on loopback only, and that no two of them share a directory. Whoever has started it stops it; if he dies, it
goes on, and keeps its directory. Must not know what brokers keep in it.
"""

import fcntl
import os
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO

from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause

HOST = "127.0.0.1"
START_TIMEOUT_SECONDS = 30
STOP_TIMEOUT_SECONDS = 10

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JARS = (
    "commons-io-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "metrics-core-",
    "netty-",
    "slf4j-api-",
    "snappy-java-",
    "zookeeper-",
)
_MEMORY = (
    "-Xms16m",
    "-Xmx72m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
)
_CONFIGURATION = """\
tickTime={tick_time_ms}
dataDir={data}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr
autopurge.snapRetainCount=3
autopurge.purgeInterval=24
preAllocSize=4096
"""
_LOGGING = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
_LOOK_SECONDS = 0.02


class ZooKeeperFailed(Exception):
    """The server cannot be started; one sentence."""


class ZooKeeperServer:
    """``java`` is the program's path. A session of a client lasts between 2 and 20 ticks."""

    def __init__(
        self, directory: str, port: int, java: str, *, tick_time_ms: int = 500, clocks: Clocks = SYSTEM_CLOCKS
    ) -> None:
        self.directory = Path(directory).absolute()
        self.port = port
        self._java = java
        self._tick_time_ms = tick_time_ms
        self._clocks = clocks
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """What ``zookeeper.connect`` names."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """``None`` while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start it on what the directory holds, and return once it answers; raises :class:`ZooKeeperFailed`."""
        class_path = _class_path()
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        with self._locked_directory() as lock:
            self._check_port()
            configuration = self.directory / "zoo.cfg"
            configuration.write_text(
                _CONFIGURATION.format(tick_time_ms=self._tick_time_ms, data=data, port=self.port, host=HOST)
            )
            (self.directory / "log4j2.properties").write_text(_LOGGING)
            with open(self.directory / "zookeeper.log", "ab") as log:
                # A session of its own: Ctrl-C in a terminal must not stop it before the brokers.
                # It inherits the lock, and so keeps it as long as it lives, whatever becomes of this process.
                self._process = subprocess.Popen(
                    [
                        self._java,
                        *_MEMORY,
                        f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
                        "-cp",
                        class_path,
                        _MAIN,
                        str(configuration),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=[lock.fileno()],
                )
            lock.write(f"{self._process.pid}\n")
        self._wait_until_it_answers(self._process)

    def stop(self) -> None:
        """Stop it, if it runs; what it has acknowledged is in its directory."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> "ZooKeeperServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _locked_directory(self) -> IO[str]:
        """The file ``zookeeper.pid``, locked: as long as a server lives, and empty until one is started."""
        lock = open(self.directory / "zookeeper.pid", "a+")  # noqa: SIM115  the caller closes it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            pid = lock.read().strip() or "unknown"
            lock.close()
            raise ZooKeeperFailed(f"a ZooKeeper already runs on {self.directory}: process {pid}") from None
        lock.truncate(0)
        return lock

    def _check_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, self.port))
            except OSError as error:
                raise ZooKeeperFailed(f"ZooKeeper cannot listen on {self.address}: {error.strerror}") from None

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = self._clocks.monotonic_seconds() + START_TIMEOUT_SECONDS
        while process.poll() is None:
            if is_answering(self.port):
                return
            if self._clocks.monotonic_seconds() > deadline:
                self.stop()
                raise ZooKeeperFailed(
                    f"ZooKeeper did not answer on {self.address} within {START_TIMEOUT_SECONDS} s: "
                    f"see {self.directory / 'zookeeper.log'}"
                )
            pause(_LOOK_SECONDS)
        self._process = None
        raise ZooKeeperFailed(
            f"ZooKeeper exited with status {process.returncode} at its start: see {self.directory / 'zookeeper.log'}"
        )


def is_answering(port: int, timeout_seconds: float = 1) -> bool:
    """Whether a ZooKeeper on this machine says that it is well."""
    try:
        with socket.create_connection((HOST, port), timeout_seconds) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
    except OSError:
        return False


def _class_path() -> str:
    """Only the jars that a server needs: all of PySpark's take longer to look through."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ZooKeeperFailed('the ZooKeeper server is in the package pyspark: pip install "lamina[spark]" brings it')
    jars = Path(spec.origin).parent / "jars"
    found = [str(jar) for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(_JARS)]
    if not any("/zookeeper-" in jar for jar in found):
        raise ZooKeeperFailed(f"there is no ZooKeeper server among the jars in {jars}")
    return os.pathsep.join(found)
