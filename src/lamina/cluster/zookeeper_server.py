"""A real ZooKeeper server as a process beside the brokers, from the jars that PySpark brings.

Owns the process: its files in one directory (``zoo.cfg``, ``data``, ``zookeeper.log``), its small memory, that it
listens on loopback only, and that no two of them share a directory. Whoever has started it stops it; if he dies, it
goes on, and keeps its directory. Must not know what brokers keep in it.
"""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause
from lamina.cluster.errors import ClusterError
from lamina.cluster.guarded_process import start_guarded
from lamina.cluster.ports import HOST, is_free
from lamina.store.ensemble_health import says_it_is_well

INSTALL = 'pip install "lamina[cluster,spark]"'
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
        self._log = self.directory / "zookeeper.log"
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
        """Start it on what the directory holds, and return once it answers; raises :class:`ClusterError`."""
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        if not is_free(self.port):
            raise ClusterError(f"ZooKeeper cannot listen on {self.address}: the port is taken by another program")
        configuration, logging = self.directory / "zoo.cfg", self.directory / "log4j2.properties"
        configuration.write_text(
            _CONFIGURATION.format(tick_time_ms=self._tick_time_ms, data=data, port=self.port, host=HOST)
        )
        logging.write_text(_LOGGING)
        command = (
            *(self._java, *_MEMORY, f"-Dlog4j2.configurationFile={logging}"),
            *("-cp", class_path(), _MAIN, str(configuration)),
        )
        self._process = start_guarded(command, self.directory / "zookeeper.pid", log=self._log)
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

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = self._clocks.monotonic_seconds() + START_TIMEOUT_SECONDS
        while process.poll() is None:
            if is_answering(self.port):
                return
            if self._clocks.monotonic_seconds() > deadline:
                self.stop()
                raise ClusterError(
                    f"ZooKeeper did not answer on {self.address} within {START_TIMEOUT_SECONDS} s: see {self._log}"
                )
            pause(_LOOK_SECONDS)
        self._process = None
        raise ClusterError(f"ZooKeeper exited with status {process.returncode} at its start: see {self._log}")


def is_answering(port: int, timeout_seconds: float = 1) -> bool:
    """Whether a ZooKeeper on this machine says that it is well."""
    try:
        return says_it_is_well(HOST, port, timeout_seconds)
    except OSError:
        return False


def class_path() -> str:
    """Only the jars that a server needs: all of PySpark's take longer to look through. Raises where they are not."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ClusterError(f"the ZooKeeper server is in the package pyspark: {INSTALL} brings it")
    jars = Path(spec.origin).parent / "jars"
    found = [str(jar) for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(_JARS)]
    if not any("/zookeeper-" in jar for jar in found):
        raise ClusterError(f"there is no ZooKeeper server among the jars in {jars}")
    return os.pathsep.join(found)
