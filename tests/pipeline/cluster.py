"""A Spark standalone cluster for tests: a master and two workers, from what pip installed."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType

from lamina.cluster.ports import free_port
from lamina.pipeline.gateway import spark_home
from lamina.pipeline.java import find_java
from tests.broker.process import SOURCES
from tests.pipeline.engines import processes_of, wait_until


class Cluster:
    """Its workers do not see what lies below ``hidden``."""

    def __init__(self, directory: Path, hidden: Path | None = None) -> None:
        self.directory = directory
        self._hidden = hidden
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port, self._web_port = free_port(), free_port()
        self.master = f"spark://127.0.0.1:{self._port}"
        self.work = [directory / "work-0", directory / "work-1"]

    def __enter__(self) -> "Cluster":
        self.directory.mkdir(parents=True)
        try:
            self._start()
        except BaseException:
            self.lose()
            raise
        return self

    def _start(self) -> None:
        web = ["--webui-port", str(self._web_port)]
        self._run("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(self._port), *web)
        wait_until(lambda: self._state() is not None)
        for number, work in enumerate(self.work):
            # Spark does not run a task a second time on the same machine: these are two.
            host = ["--host", f"127.0.0.{number + 1}"]
            limits = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
            self._run("org.apache.spark.deploy.worker.Worker", *host, *limits, self.master)
        wait_until(lambda: (self._state() or {}).get("aliveworkers") == 2)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(30)

    def lose(self) -> None:
        """All of it at once, executors too: they end with their workers."""
        for process in self._processes:
            process.kill()
            process.wait()
        wait_until(lambda: not processes_of(self.directory, "CoarseGrainedExecutorBackend"))

    def come_back(self) -> None:
        self._processes.clear()
        self._start()

    def _run(self, main: str, *arguments: str) -> None:
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": arguments[1],
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(SOURCES),
        }
        java = find_java().path
        command = [java, "-Xmx256m", f"-Djava.io.tmpdir={self.directory}", "-cp", f"{spark_home()}/jars/*", main]
        if self._hidden is not None and "worker" in main:
            cover = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", cover, str(self._hidden), *command]
        with (self.directory / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen([*command, *arguments], env=environment, stdout=log, stderr=log, cwd=self.directory)
            )

    def _state(self) -> dict[str, object] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web_port}/json/", timeout=10) as answer:
                state: dict[str, object] = json.load(answer)
                return state
        except (OSError, ValueError):
            return None  # It is not there yet, or not quite.
