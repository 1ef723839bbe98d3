"""Programs of Kafka Connect: MirrorMaker 2 by itself, and a worker that is told over HTTP which connectors to run.

Owns the processes, their files and what they logged. Needs the jars that `java/mirror/pom.xml` names. Must not know
what connectors do.
"""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from lamina.cluster.ports import HOST, free_port
from tests.broker.process import eventually
from tests.peers.kafka import LOGGING, KafkaFailedError, jars

START_SECONDS = 60.0
STOP_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


class ConnectProcess:
    """Runs as long as the context does, unless it is stopped before."""

    def __init__(self, main_class: str, properties: Mapping[str, str], directory: Path, *arguments: str) -> None:
        directory.mkdir(parents=True)
        path = directory / "connect.properties"
        path.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
        classpath = jars("mirror/pom.xml", "kafka-mirror")
        flags = ("-Xmx384M", "-XX:+UseSerialGC", *LOGGING)
        self._command = ["java", *flags, "-cp", classpath, main_class, str(path), *arguments]
        self._log = directory / "log.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ConnectProcess:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def logged(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """What it has read is written, and said to be."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(STOP_SECONDS)
        self._process = None

    def assert_runs(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise KafkaFailedError(f"{self._command[-2]} ended; its last lines:\n{self.logged()[-4000:]}")


class MirrorMaker(ConnectProcess):
    """With no Connect around it: it keeps its state in the cluster that it copies to."""

    def __init__(self, properties: Mapping[str, str], directory: Path) -> None:
        super().__init__("org.apache.kafka.connect.mirror.MirrorMaker", properties, directory)


class ConnectWorker(ConnectProcess):
    """A worker of its own group, that stores what it is told in the cluster to which its connectors write."""

    def __init__(self, bootstrap: str, name: str, replicas: int, directory: Path) -> None:
        self._address = f"http://{HOST}:{free_port()}"
        bytes_as_they_are = "org.apache.kafka.connect.converters.ByteArrayConverter"
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "listeners": self._address,
            "key.converter": bytes_as_they_are,
            "value.converter": bytes_as_they_are,
            "producer.enable.idempotence": "true",
        }
        for kind in ("config", "offset", "status"):
            properties[f"{kind}.storage.topic"] = f"{name}-{kind}s"
            properties[f"{kind}.storage.replication.factor"] = str(replicas)
        super().__init__("org.apache.kafka.connect.cli.ConnectDistributed", properties, directory)

    def await_start(self) -> None:
        eventually(self._answers, START_SECONDS)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What it answers, once it is not too busy with itself to do so."""
        answers: list[Any] = []

        def is_answered() -> bool:
            self.assert_runs()
            try:
                answers.append(self._ask(method, path, body))
            except urllib.error.HTTPError as refused:
                # It is told so while the worker rebalances or has not stopped a task yet.
                if refused.code not in (404, 409, 500):
                    raise KafkaFailedError(f"{method} {path}: {refused.read().decode()}") from refused
                return False
            return True

        eventually(is_answered, START_SECONDS)
        return answers[0]

    def await_running(self, connector: str) -> None:
        """With at least one task, and all of them."""

        def runs() -> bool:
            told = self.ask("GET", f"/connectors/{connector}/status")
            states = [task["state"] for task in told["tasks"]]
            assert "FAILED" not in states, told
            return bool(states) and set(states) == {"RUNNING"}

        eventually(runs, START_SECONDS)

    def _answers(self) -> bool:
        self.assert_runs()
        try:
            self._ask("GET", "/connectors")
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as response:
            text = response.read()
        return json.loads(text) if text else None
