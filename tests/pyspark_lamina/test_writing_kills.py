"""What was in the source is in the sink, once each, whatever is killed: driver, executors, workers or broker."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.arrow.topics import create
from tests.broker.process import SOURCES, BrokerProcess
from tests.pipeline.cluster import Cluster
from tests.pipeline.engines import processes_of
from tests.producing.tasks import until_seen
from tests.pyspark_lamina.streaming_job import BEGUN

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("LAMINA_SINK_KILLS", "20"))
ROWS = 200
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": f"{SOURCES}:{ROOT}",
}


class Job:
    """One query, killed and started again until it has written all."""

    def __init__(self, broker: BrokerProcess, directory: Path, topic: str, files: int) -> None:
        self.broker, self.directory, self.topic, self.files = broker, directory, topic, 0
        (directory / "input").mkdir()
        self.add(files)
        create(broker.address, topic, 3)
        self.master, self.conf, self.stumbles = "local[2,4]", dict[str, str](), False
        self.runs = 0

    def add(self, files: int) -> None:
        """A batch each."""
        for number in range(self.files, self.files + files):
            lines = "\n".join(f'{{"id": {one}}}' for one in range(number * ROWS, (number + 1) * ROWS))
            (self.directory / "input" / f"{number:04}.json").write_text(lines)
        self.files += files

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[str]"]:
        """From the moment in which the query runs; all of it is gone afterwards."""
        self.runs += 1
        facts = {
            "directory": str(self.directory / f"spark-{self.runs}"),
            "input": str(self.directory / "input"),
            "checkpoint": str(self.directory / "checkpoint"),
            "servers": self.broker.address,
            "topic": self.topic,
            "master": self.master,
            "conf": self.conf,
            "stumbles": self.stumbles,
        }
        command = [sys.executable, "-m", "tests.pyspark_lamina.streaming_job", json.dumps(facts)]
        log = (self.directory / f"log-{self.runs}").open("w")
        with (
            log,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, start_new_session=True
            ) as process,
        ):
            assert process.stdout is not None
            try:
                assert process.stdout.readline().strip() == BEGUN, self.logged()
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def finish(self) -> None:
        with self.running() as process:
            assert process.wait(600) == 0, self.logged()

    def logged(self) -> str:
        return (self.directory / f"log-{self.runs}").read_text()[-5_000:]

    def check(self) -> None:
        wanted = sorted(str(number) for number in range(self.files * ROWS))
        until_seen(self.broker.address, self.topic, wanted)

    def batches(self) -> int:
        """So many are committed."""
        return len(list((self.directory / "checkpoint" / "commits").glob("[0-9]*")))


def ends_within(process: "subprocess.Popen[str]", seconds: float) -> bool:
    try:
        return process.wait(seconds) is not None
    except subprocess.TimeoutExpired:
        return False


def test_drivers_workers_and_the_broker_are_killed_at_random_points(
    own_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    chance = random.Random(7)
    broker = own_broker()
    broker.keep_port()
    broker.restart()
    job = Job(broker, tmp_path, "killed", files=6 * KILLS)
    kills = 0
    while kills < KILLS:
        with job.running() as process:
            while kills < KILLS and not ends_within(process, chance.uniform(0.2, 4.0)):
                if kills % 3 == 0:
                    workers = processes_of(job.directory / f"spark-{job.runs}", "pyspark.daemon")
                    kills += kill_one(workers, chance)
                elif kills % 3 == 1:
                    broker.kill()
                    broker.start()
                    kills += 1
                else:
                    kills += 1
                    break  # The driver is killed, and all that it has started.
        if process.returncode == 0:
            job.add(KILLS)  # It was over too soon.
        assert job.runs <= 5 * KILLS, "too little is there to be killed"
    job.finish()
    job.check()


def kill_one(processes: set[int], chance: random.Random) -> bool:
    """Whether there was one."""
    if not processes:
        return False
    with suppress(ProcessLookupError):
        os.kill(chance.choice(sorted(processes)), signal.SIGKILL)
        return True
    return False


def test_executors_of_a_cluster_are_killed_and_attempts_fail_and_run_twice(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    chance = random.Random(11)
    with Cluster(tmp_path / "cluster") as cluster:
        job = Job(broker, tmp_path, "executors-killed", files=30)
        job.master, job.conf, job.stumbles = cluster.master, SPECULATION, True
        killed, committed = 0, 0
        with job.running() as process:
            while killed < 5 and not ends_within(process, chance.uniform(0.2, 3.0)):
                if job.batches() > committed:  # Executors that are killed before they have begun show nothing.
                    committed = job.batches()
                    killed += kill_one(processes_of(cluster.directory, "CoarseGrainedExecutorBackend"), chance)
            status = process.wait(600)
        if status != 0:
            job.finish()  # An executor too many was lost at one task: Spark gives the query up.
        job.check()
        assert killed == 5, "it was over too soon"
