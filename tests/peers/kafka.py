"""A real Apache Kafka, a KRaft node on loopback, for tests that compare Lamina with it.

Owns where Kafka's jars come from, the broker process, its log lines and its tools. Knows nothing of Lamina.
Needs Java 17+ and Maven; the jars that `java/pom.xml` names are copied once into a cache elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

from lamina.cluster.ports import free_port
from tests.peers.driver import Driver

VERSION = "4.1.0"
SPARK_SOURCE_VERSION = "4.2.0"
"""Of Spark's own Kafka source; java/spark/pom.xml names it too."""
JAVA_DIRECTORY = Path(__file__).parent / "java"
CLUSTER_ID = "TGFtaW5hUGVlckthZmthMQ"
START_SECONDS = 60
STOP_SECONDS = 60
TOOL_SECONDS = 60
_LOOK_SECONDS = 0.02

LOGGING = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
)
SHORT_LIFE = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a program that ends before it would be fast."""
SMALL_HEAP = ("-Xmx512M", "-Xms256M", "-XX:+UseG1GC")
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)


class KafkaMissingError(Exception):
    """Kafka cannot run on this machine; the message says in one sentence what is missing."""


class KafkaFailedError(Exception):
    """Kafka or one of its tools ended badly or did not answer in time."""


def cache_directory() -> Path:
    """Where what is fetched stays."""
    return Path(os.environ.get("LAMINA_PEERS_DIR", "~/.cache/lamina")).expanduser()


@cache
def jars(pom: str = "pom.xml", name: str = "kafka") -> str:
    """The classpath that a pom names; fetches the jars with Maven on the first call ever on this machine."""
    _need("java", "Java 17 or newer")
    libraries = cache_directory() / f"{name}-{VERSION}"
    if not libraries.is_dir():
        _need("mvn", "Maven, once, to fetch it")
        cache_directory().mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted or a simultaneous download leaves no half classpath.
        with tempfile.TemporaryDirectory(dir=cache_directory(), ignore_cleanup_errors=True) as scratch:
            fetched = Path(scratch) / "libraries"
            _fetch(JAVA_DIRECTORY / pom, fetched)
            try:
                fetched.rename(libraries)
            except OSError:
                if not libraries.is_dir():
                    raise
    return str(libraries / "*")


def streams_jars() -> str:
    """Kafka Streams, which brokers and tools do not need."""
    return jars("streams/pom.xml", "kafka-streams")


def spark_source_jars() -> str:
    """Spark's own Kafka source, for a Spark that is there."""
    return jars("spark/pom.xml", "spark-source")


def _need(program: str, what: str) -> None:
    if shutil.which(program) is None:
        raise KafkaMissingError(f"A real Kafka needs {what}: there is no `{program}` on the PATH.")


def _fetch(pom: Path, target: Path) -> None:
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={target}",
    ]
    maven = subprocess.run(command, capture_output=True, text=True)
    if maven.returncode != 0:
        reason = next((line for line in maven.stdout.splitlines() if "ERROR" in line), "it said nothing")
        raise KafkaMissingError(f"Maven could not fetch Kafka {VERSION}: {reason}")


def tool_command(main_class: str, *arguments: str) -> list[str]:
    """Runs one of Kafka's command-line classes."""
    return ["java", *SHORT_LIFE, *LOGGING, *QUIET, "-cp", jars(), main_class, *arguments]


def run_tool(main_class: str, *arguments: str) -> str:
    """What one of Kafka's command-line classes printed, both streams in order; raises if it failed."""
    command = tool_command(main_class, *arguments)
    tool = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TOOL_SECONDS)
    if tool.returncode != 0:
        raise KafkaFailedError(f"{main_class} {' '.join(arguments)} exited with {tool.returncode}:\n{tool.stdout}")
    return tool.stdout


def dump_segments(*files: Path, options: tuple[str, ...] = ()) -> str:
    """DumpLogSegments over some files of one kind or of several."""
    names = ",".join(str(file) for file in files)
    return run_tool("kafka.tools.DumpLogSegments", *options, "--files", names)


def driver_of(bootstrap: str) -> Driver:
    """Kafka's own clients, connected to any broker."""
    return Driver(["java", "-Xmx256M", *QUIET, "-cp", jars(), str(JAVA_DIRECTORY / "Driver.java"), bootstrap])


@dataclass(frozen=True, slots=True)
class LogMark:
    """A place in a broker's log, to look only at what came after it."""

    position: int


class Kafka:
    """One Kafka node over `root/data`; a data directory that is already there is used as it is.

    It is alone, unless the settings name other voters, of which it has to be one by its node id and controller port.
    """

    def __init__(
        self,
        root: Path,
        settings: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = SMALL_HEAP,
        controller_port: int | None = None,
    ) -> None:
        self.root = root
        self._jvm_flags = jvm_flags
        self.data_directory = root / "data"
        self._log = root / "log.txt"
        self._launched = LogMark(0)
        self._process: subprocess.Popen[bytes] | None = None
        self._port, controller_port = free_port(), controller_port or free_port()
        self._properties = root / "server.properties"
        root.mkdir(parents=True, exist_ok=True)
        defaults = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
        }
        lines = [f"{name}={value}\n" for name, value in (defaults | dict(settings or {})).items()]
        self._properties.write_text("".join(lines))

    def __enter__(self) -> Kafka:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.kill()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def process_ids(self) -> tuple[int, ...]:
        """None while it does not run."""
        return () if self._process is None else (self._process.pid,)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def format(self) -> None:
        """Makes the data directory, if it is not there yet."""
        if not (self.data_directory / "meta.properties").exists():
            run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties))

    def start(self) -> LogMark:
        """Formats the directory if it is new, starts the broker and returns once it takes connections."""
        self.format()
        self.launch()
        self.await_start()
        return self._launched

    def launch(self) -> None:
        """Starts the process and waits for nothing. It logs to a file: nobody has to read along."""
        self._launched = self.mark()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *self._jvm_flags, *LOGGING, "-cp", jars(), "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def await_start(self) -> None:
        """Returns once the broker that was launched takes connections."""
        self.wait_for_line(r"Kafka Server started", since=self._launched, seconds=START_SECONDS)
        socket.create_connection(("127.0.0.1", self._port), timeout=5).close()

    def mark(self) -> LogMark:
        return LogMark(self._log.stat().st_size if self._log.exists() else 0)

    def lines_since(self, mark: LogMark, pattern: str = "") -> list[str]:
        """Whole lines only: the last one may still be being written."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as log:
            log.seek(mark.position)
            whole, _, _ = log.read().rpartition(b"\n")
        return [line for line in whole.decode(errors="replace").splitlines() if re.search(pattern, line)]

    def wait_for_line(self, pattern: str, *, since: LogMark, seconds: float) -> str:
        """The first matching log line after the mark; raises when the broker ends or time runs out first."""
        deadline = time.monotonic() + seconds
        while True:
            # Asked before the log is read, so that a broker's last words are seen.
            ended = self._process is None or self._process.poll() is not None
            if found := self.lines_since(since, pattern):
                return found[0]
            if ended or time.monotonic() > deadline:
                why = "ended" if ended else f"took over {seconds} s"
                last = "\n".join(self.lines_since(since)[-20:])
                raise KafkaFailedError(f"Kafka {why} before a log line matched {pattern!r}; its last lines:\n{last}")
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        """A clean shutdown: everything flushed, indexes trimmed, the clean-shutdown file written."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9, or nothing if the broker is not running."""
        self._end(signal.SIGKILL)

    def _end(self, sent: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(sent)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            raise KafkaFailedError(f"Kafka did not stop within {STOP_SECONDS} s of {sent.name}") from late
        finally:
            self._process = None

    def driver(self) -> Driver:
        """Kafka's own clients, connected to this broker."""
        return driver_of(self.bootstrap)
