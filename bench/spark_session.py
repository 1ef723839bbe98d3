"""A Spark that is measured: a driver with its JVM and its Python workers, in processes of its own.

Owns how each is started, all with the same settings: as it is delivered, with two slots, a heap of 2 GB and without its
pages of the web. Must not know what it is asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.machine import PROJECT
from tests.peers.kafka import spark_source_jars
from tests.peers.spark import connector_jars, site_packages

MASTER, HEAP = "local[2]", "2g"
SETTINGS = {
    "spark.master": MASTER,
    "spark.driver.memory": HEAP,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
STOP_SECONDS = 30


class SparkFailedError(Exception):
    """A Spark ended, or could not do what it was asked; the message says why."""


@dataclass(slots=True)
class Session:
    root: Path
    """For its log and its files."""
    settings: Mapping[str, str]
    sources: Mapping[str, str]
    """Names of classes by their modules, to be registered."""
    python_path: Sequence[str]
    _process: subprocess.Popen[str] | None = field(default=None)

    @property
    def process_ids(self) -> tuple[int, ...]:
        return () if self._process is None else (self._process.pid,)

    def start(self) -> None:
        if self._process is not None:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        settings = {
            **SETTINGS,
            "spark.local.dir": str(self.root / "local"),
            "spark.sql.warehouse.dir": str(self.root / "warehouse"),
            **self.settings,
        }
        environment = {
            **{name: value for name, value in os.environ.items() if name != "SPARK_HOME"},
            "PYTHONPATH": os.pathsep.join([*self.python_path, str(PROJECT)]),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.spark_program"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=self.root,
            )
        self._ask({"settings": settings, "sources": dict(self.sources)})

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """What the program's method of this name answers. Raises `SparkFailedError`."""
        return self._ask({"do": do, **what})

    def stop(self) -> None:
        """Its input ends, and so does it."""
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.communicate()
            raise SparkFailedError(f"Spark did not end within {STOP_SECONDS} s") from late

    def kill(self) -> None:
        """The driver alone."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.wait()

    @property
    def _log(self) -> Path:
        return self.root / "log.txt"

    def _ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # Its log says more.
            print(json.dumps(order), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            last = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
            raise SparkFailedError(f"Spark ended; its last lines:\n{last}")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise SparkFailedError(answer["failed"])
        return answer


def our_session(root: Path) -> Session:
    """The Spark that this project is installed with, and Lamina's source and sink."""
    return Session(root, {}, {"bench.empty_source": "EmptySource"}, [])


def newer_session(root: Path) -> Session:
    """The same Spark as ours, with the newest source and sink of Spark's own that can be had."""
    return Session(root, {"spark.driver.extraClassPath": spark_source_jars()}, {}, [])


def official_session(root: Path) -> Session:
    """Spark 3.5.1 with its own source and sink."""
    jars = {"spark.driver.extraClassPath": connector_jars()}
    return Session(root, jars, {}, [str(site_packages())])
