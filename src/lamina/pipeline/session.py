"""The Spark context of an engine: configured, opened, closed.

Owns what Spark is told beyond what an operator says. Nothing listens on a network but where a cluster needs it; the
sockets between the processes of one machine are loopback or of the file system and ask for a secret; everything that
Spark writes for itself lies in the engine's directory. Must not know what jobs are run.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lamina
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.pipeline.class_archive import use_archive
from lamina.pipeline.gateway import JavaProcess, await_door, begin_java, java_command, spark_home
from lamina.pipeline.java import Java, find_java
from lamina.pipeline.spark_errors import MasterSilent

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOOPBACK = re.compile(r"(spark|k8s)://(https?://)?(127\.|localhost[:/]|\[::1\])")
_LONGEST_SOCKET_DIRECTORY = 60
"""A socket in the file system has a path of at most 107 bytes, and Spark adds 42 to its directory."""
_STOP_SECONDS = 5.0
_LEAST_SCRATCH_BYTES = 1 << 20
_LOCAL_DIR = "spark.local.dir"
_PATIENCE, _PATIENCE_DEFAULT = "spark.network.timeout", "120s"
"""Spark's own word for how long one waits for another machine."""

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
        _LOCAL_DIR: f"{scratch}/local",
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
    told = ours | dict(given)
    if _LOCAL_DIR in given:
        told[_LOCAL_DIR] = _own_places(given[_LOCAL_DIR], directory)
    return told | {"spark.master": with_retries(master), "spark.python.daemon.module": "lamina.pipeline.daemon"}


def _own_places(places: str, directory: str) -> str:
    """In each place that others use too, one that can be emptied: Spark leaves what it has there when it is ended."""
    mark = hashlib.sha256(directory.encode()).hexdigest()[:16]
    return ",".join(f"{place.strip()}/lamina-{mark}" for place in places.split(","))


def prepare_directory(directory: str) -> None:
    """Make the engine's directory, closed to others, and empty what an earlier engine left in it.

    Java does not end, nor say why, where it cannot write.
    """
    os.makedirs(directory, mode=0o700, exist_ok=True)
    scratch = Path(directory, "scratch")
    if scratch.is_symlink() or not stat.S_ISDIR(os.lstat(directory).st_mode):
        raise OSError(f"{directory} is not a directory of the engine's own")
    shutil.rmtree(scratch, ignore_errors=True)
    for name in ("tmp", "local"):
        scratch.joinpath(name).mkdir(parents=True, mode=0o700)
    found = os.statvfs(scratch)
    if found.f_bavail * found.f_frsize < _LEAST_SCRATCH_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(scratch))


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

    def __init__(self, master: str, given: Mapping[str, str], directory: str, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._clocks = clocks
        self.is_local = is_local(master)
        self.master = master
        self._given = given
        self.directory = directory
        self._java: JavaProcess | None = None
        self._killing = threading.Lock()
        self._is_killed = False
        self._context: SparkContext | None = None
        self._places: list[str] = []
        self.java = ""
        self.seconds = 0.0
        self.patience_seconds = 0.0
        """How long a cluster may give no answer, or no executor."""

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
        """Whether Java is there, and its cluster has not sent it away."""
        if self._java is None or self._java.process.poll() is not None:
            return False
        try:
            return self._context is None or not self._context._jsc.sc().isStopped()
        except Exception:
            return False  # It was just about to end.

    @property
    def executors(self) -> int:
        """Processes that could do a task now; the driver is none but in a local Spark."""
        try:
            return int(self.context._jsc.sc().getExecutorMemoryStatus().size()) - (0 if self.is_local else 1)
        except Exception:
            return 0  # It has just ended.

    def open(self, options: tuple[str, ...] | None = None) -> None:
        """Start Java and Spark; raises :class:`NoJava`, :class:`GatewayFailed`, or what Spark has to say."""
        began = self._clocks.monotonic_seconds()
        java: Java = find_java()
        prepare_directory(self.directory)
        prepare_environment(self.master, self.directory)
        conf = spark_settings(self.master, self._given, self.directory)
        if _LOCAL_DIR in self._given:
            self._places = conf[_LOCAL_DIR].split(",")
            self._empty_places()
            for place in self._places:
                os.makedirs(place, mode=0o700)
        if not self.is_local:
            conf.setdefault("spark.app.id", f"lamina-{secrets.token_hex(4)}")
        temporary = f"{self.directory}/scratch/tmp"
        if options is None:
            options = use_archive(self.directory, java)
        begun = begin_java(java_command(java.path, conf, options, temporary), temporary)
        with self._killing:
            self._java = begun
            if self._is_killed:
                begun.end()
        # While Java starts.
        from pyspark import SparkContext

        SparkContext._ensure_initialized(gateway=await_door(begun, self._clocks).connect())
        self._context = self._connect(conf)
        self.java = f"Java {java.release} at {java.path}"
        self.seconds = self._clocks.monotonic_seconds() - began
        self._first_shuffle_id = 0

    def _connect(self, conf: Mapping[str, str]) -> "SparkContext":
        """Spark tries a master that is not there for minutes, or begins without it and ends."""
        from pyspark import SparkConf, SparkContext

        jvm: Any = SparkContext._jvm
        settings = SparkConf(_jvm=jvm)
        for name, value in conf.items():
            settings.set(name, value)
        self.patience_seconds = float(
            jvm.org.apache.spark.network.util.JavaUtils.timeStringAsSec(conf.get(_PATIENCE, _PATIENCE_DEFAULT))
        )
        waiting = threading.Timer(self.patience_seconds, self.kill)
        if not self.is_local:
            waiting.start()
        try:
            context = SparkContext(conf=settings)
            if context._jsc.sc().isStopped():
                raise MasterSilent("it does not answer")
        except Exception:
            if self._is_killed:
                raise MasterSilent(f"it does not answer within {self.patience_seconds:.0f} s ({_PATIENCE})") from None
            raise
        finally:
            waiting.cancel()
        return context

    def forget_shuffles(self) -> None:
        """Have Spark remove what passed through its shuffles at once, not when its collector comes by."""
        spark: Any = self.context._jsc.sc()
        cleaner, next_id = spark.cleaner().get(), spark.newShuffleId()
        for shuffle_id in range(self._first_shuffle_id, next_id):
            cleaner.doCleanupShuffle(shuffle_id, True)
        self._first_shuffle_id = next_id + 1

    def close(self) -> None:
        """End Spark: a cluster is told, a local one is simply ended."""
        if self._context is not None and not self.is_local and self.is_alive:
            telling = threading.Thread(target=self._context.stop, daemon=True)
            telling.start()
            telling.join(_STOP_SECONDS)
        self.kill()
        self._empty_places()
        shutil.rmtree(f"{self.directory}/scratch", ignore_errors=True)

    def _empty_places(self) -> None:
        """Remove what Spark left where the operator would have its scratch."""
        for place in self._places:
            shutil.rmtree(place, ignore_errors=True)

    def finish(self) -> None:
        """End Spark the long way, so that Java can write down which classes it had."""
        self.context.stop()
        assert self._java is not None
        assert self._java.process.stdin is not None
        self._java.process.stdin.close()
        self._java.process.wait()
        shutil.rmtree(f"{self.directory}/scratch", ignore_errors=True)

    def kill(self) -> None:
        with self._killing:
            self._is_killed = True
            if self._java is not None:
                self._java.end()
