"""A server of Spark Connect for tests, from what pip installed: on loopback, in a process of its own."""

import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from lamina.cluster.ports import free_port
from lamina.pipeline.gateway import java_command, spark_home
from lamina.pipeline.java import find_java
from tests.arrow.dataframes import environment
from tests.pipeline.engines import wait_until

_CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """Who leaves it has ended it, with the Python processes that it started."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()

    @property
    def address(self) -> str:
        return f"sc://127.0.0.1:{self._port}"

    def __enter__(self) -> "ConnectServer":
        self._directory.mkdir(parents=True)
        conf = {
            **_CONF,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.local.dir": str(self._directory / "local"),
            "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
        }
        java = java_command(find_java().path, conf, (), str(self._directory))
        given = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        command = [*java[: java.index("--master")], *given, "--class", _SERVER, "spark-internal"]
        told = {"SPARK_HOME": str(spark_home()), "SPARK_SCALA_VERSION": "2.13", "PYSPARK_PYTHON": sys.executable}
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env={**environment(), **told, "SPARK_LOCAL_IP": "127.0.0.1"},
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        try:
            wait_until(self._answers)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.logged()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def logged(self) -> str:
        return (self._directory / "log").read_text()[-5_000:]

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(60)
