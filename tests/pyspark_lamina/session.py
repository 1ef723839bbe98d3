"""A local Spark for tests: started without its scripts, and with as little of Java's compiler as it takes."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lamina.pipeline.gateway import await_door, begin_java, java_command
from lamina.pipeline.java import find_java

_SETTINGS = {
    "spark.app.name": "tests",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.pyspark.python": sys.executable,
    "spark.pyspark.driver.python": sys.executable,
}

LOADED_WORKERS = {"spark.python.daemon.module": "tests.pyspark_lamina.daemon"}
"""For a test of what workers do: they begin at once."""
_ROOT = Path(__file__).parents[2]


@contextmanager
def spark_session(
    directory: Path, master: str = "local[2]", more: Mapping[str, str] | None = None, java: tuple[str, ...] = ()
) -> Iterator[SparkSession]:
    temporary = directory / "tmp"
    temporary.mkdir(parents=True)
    conf = {
        **_SETTINGS,
        "spark.master": master,
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        **(more or {}),
    }
    found = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(_ROOT)]))
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": found}
    with patch.dict("os.environ", environment):
        running = begin_java(java_command(find_java().path, conf, java, str(temporary)), str(temporary))
        try:
            SparkContext._ensure_initialized(gateway=await_door(running).connect())
            settings = SparkConf(_jvm=SparkContext._jvm)
            for name, value in conf.items():
                settings.set(name, value)
            session = SparkSession(SparkContext(conf=settings))
            try:
                yield session
            finally:
                session.stop()
        finally:
            if SparkContext._gateway is not None:
                SparkContext._gateway.shutdown()
            SparkContext._gateway = SparkContext._jvm = None  # Another session may be started in this process.
            running.end()
            for pipe in (running.process.stdin, running.process.stderr):
                assert pipe is not None
                pipe.close()
