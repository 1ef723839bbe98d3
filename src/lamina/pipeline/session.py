"""The Spark context of an engine: configured, opened, closed.

Owns what Spark is told beyond what an operator says. Nothing listens on a network but where a cluster needs it; the
sockets between the processes of one machine are loopback or of the file system and ask for a secret; everything that
Spark writes for itself lies in the engine's directory. Must not know what jobs are run.
"""

import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lamina
from lamina.pipeline.class_archive import use_archive
from lamina.pipeline.gateway import await_door, begin_java, java_command, spark_home
from lamina.pipeline.java import Java, find_java

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOPBACK = re.compile(r"(spark|k8s)://(https?://)?(127\.|localhost[:/]|\[::1\])")
_LONGEST_SOCKET_DIRECTORY = 60
"""A socket in the file system has a path of at most 107 bytes, and Spark adds 42 to its directory."""
_STOP_SECONDS = 5.0

_FOREIGN = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYSPARK_DRIVER_PYTHON")
_FOREIGN_SPARK = ("SPARK_TESTING", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_HOME")


def is_local(master: str) -> bool:
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def with_retries(master: str) -> str:
    """A local master that tries a task again once: a worker that was killed is no reason to fail a pass."""
    if master == "local":
        return "local[1,2]"
    return re.sub(r"^local\[([^,\]]+)\]$", r"local[\1,2]", master)


def spark_settings(master: str, given: Mapping[str, str], directory: str) -> dict[str, str]:
    """All that Spark is told: ours first, over it what the operator gave."""
    scratch = f"{directory}/scratch"
    ours = {
        "spark.app.name": "lamina",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.local.dir": f"{scratch}/local",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }
    if is_local(master) or _LOOPBACK.match(master):
        ours |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if is_local(master) or master == "yarn" or master.startswith("k8s:"):
        ours["spark.authenticate"] = "true"  # Spark makes the secret; a standalone cluster has one of its own.
    if is_local(master):
        if len(f"{scratch}/tmp") <= _LONGEST_SOCKET_DIRECTORY:
            ours["spark.python.unix.domain.socket.enabled"] = "true"
            ours["spark.python.unix.domain.socket.dir"] = f"{scratch}/tmp"
    else:
        ours["spark.executorEnv.PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    if "NUMBA_CACHE_DIR" in os.environ and not is_local(master):
        ours["spark.executorEnv.NUMBA_CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]
    theirs = {"spark.master": with_retries(master), "spark.python.daemon.module": "lamina.pipeline.daemon"}
    return ours | dict(given) | theirs


def prepare_directory(directory: str) -> None:
    """Make the engine's directory, closed to others, and empty what an earlier engine left in it."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    scratch = Path(directory, "scratch")
    if scratch.is_symlink() or not stat.S_ISDIR(os.lstat(directory).st_mode):
        raise OSError(f"{directory} is not a directory of the engine's own")
    shutil.rmtree(scratch, ignore_errors=True)
    for name in ("tmp", "local"):
        scratch.joinpath(name).mkdir(parents=True, mode=0o700)


def prepare_environment(master: str, directory: str) -> None:
    """What this process, Java and the workers beside it find around them."""
    for name in (*_FOREIGN, *_FOREIGN_SPARK):
        os.environ.pop(name, None)
    root = str(Path(lamina.__file__).parent.parent)
    others = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([root, *others])),
        "PYTHONSAFEPATH": "1",
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "TMPDIR": f"{directory}/scratch/tmp",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if is_local(master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    kernels = Path(lamina.__file__).parent / "cleaning" / "kernels"
    if "NUMBA_CACHE_DIR" not in os.environ and not os.access(kernels, os.W_OK):
        os.environ["NUMBA_CACHE_DIR"] = f"{directory}/kernels"
    os.chdir(f"{directory}/scratch")


class Session:
    """Spark, from the start of Java to its end. ``kill`` may come at any time, from any thread."""

    def __init__(self, master: str, given: Mapping[str, str], directory: str) -> None:
        self.is_local = is_local(master)
        self._master = master
        self._given = given
        self.directory = directory
        self._java: subprocess.Popen[bytes] | None = None
        self._killing = threading.Lock()
        self._is_killed = False
        self._context: SparkContext | None = None
        self.java = ""
        self.seconds = 0.0

    @property
    def context(self) -> "SparkContext":
        assert self._context is not None
        return self._context

    @property
    def slots(self) -> int:
        """Tasks that can run at the same time."""
        return max(int(self.context.defaultParallelism), 1)

    @property
    def is_alive(self) -> bool:
        return self._java is not None and self._java.poll() is None

    def open(self, options: tuple[str, ...] | None = None) -> None:
        """Start Java and Spark; raises :class:`NoJava`, :class:`GatewayFailed`, or what Spark has to say."""
        began = time.monotonic()
        java: Java = find_java()
        prepare_directory(self.directory)
        prepare_environment(self._master, self.directory)
        conf = spark_settings(self._master, self._given, self.directory)
        if not self.is_local:
            conf.setdefault("spark.app.id", f"lamina-{secrets.token_hex(4)}")
        temporary = f"{self.directory}/scratch/tmp"
        if options is None:
            options = use_archive(self.directory, java)
        process, door = begin_java(java_command(java.path, conf, options, temporary), temporary)
        with self._killing:
            self._java = process
            if self._is_killed:
                process.kill()
        # While Java starts.
        from pyspark import SparkConf, SparkContext

        gateway = await_door(process, door).connect()
        SparkContext._ensure_initialized(gateway=gateway)
        settings = SparkConf(_jvm=SparkContext._jvm)
        for name, value in conf.items():
            settings.set(name, value)
        self._context = SparkContext(conf=settings)
        self.java = f"Java {java.release} at {java.path}"
        self.seconds = time.monotonic() - began
        self._first_shuffle_id = 0

    def forget_shuffles(self) -> None:
        """Have Spark remove what passed through its shuffles at once, not when its collector comes by."""
        spark: Any = self.context._jsc.sc()
        cleaner, next_id = spark.cleaner().get(), spark.newShuffleId()
        for shuffle_id in range(self._first_shuffle_id, next_id):
            cleaner.doCleanupShuffle(shuffle_id, True)
        self._first_shuffle_id = next_id + 1

    def close(self) -> None:
        """End Spark: a cluster is told, a local one is simply ended."""
        if self._context is not None and not self.is_local:
            telling = threading.Thread(target=self._context.stop, daemon=True)
            telling.start()
            telling.join(_STOP_SECONDS)
        self.kill()
        shutil.rmtree(f"{self.directory}/scratch", ignore_errors=True)

    def finish(self) -> None:
        """End Spark the long way, so that Java can write down which classes it had."""
        self.context.stop()
        assert self._java is not None
        assert self._java.stdin is not None
        self._java.stdin.close()
        self._java.wait()
        shutil.rmtree(f"{self.directory}/scratch", ignore_errors=True)

    def kill(self) -> None:
        with self._killing:
            self._is_killed = True
            if self._java is not None:
                self._java.kill()
                self._java.wait()
