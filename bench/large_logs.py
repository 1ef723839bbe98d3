"""What the cleaner makes of large logs, and how much memory it takes for that: ``make soak-cleaner``.

Two stories, each with a real broker and Spark with two slots, under the cleaner's default memory: ``many-keys``, more
keys than a task may hold, so that they go through the shuffle; ``large-log``, a log of many gigabytes whose keys fit
one task. The log is written straight into a killed broker's directory, which checks all of it at its next start.
After the pass everything that is left is read and compared with what arithmetic says; after a second pass, which one
more record has called for, nothing of it may have changed. Must not measure speed beside anything else: it says how
long things took, and holds memory to limits.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from bench.family import await_end, family_of, parents
from bench.known_log import KEY_BYTES, KnownLog, Survivors, Tell, WrongLog, check_survivors, write_segments
from bench.peak_memory import ROLES, PeakMemory
from lamina.cluster.ports import free_port
from tests.broker.process import COMMAND
from tests.peers.lamina import Lamina

MEBIBYTE, GIGABYTE = 1 << 20, 10**9
TOPIC = "large"
PARTITION = f"{TOPIC}-0"
SEGMENT_BYTES = 1 << 30
SLOTS = 2
BUFFER_BYTES = 128 * MEBIBYTE
LOOK_SECONDS = 0.5
CALL_SECONDS = 60
END_SECONDS = 30
LEAST_PASS_SECONDS = 300
LEAST_BYTES_PER_SECOND = 2 * MEBIBYTE
"""A pass that is slower than this over its log is given up."""

LIMITS = {"broker": 256 * MEBIBYTE, "engine": 320 * MEBIBYTE, "java": 1400 * MEBIBYTE, "worker": 512 * MEBIBYTE}
"""What each process may take at most: docs/compaction.md says the same."""


@dataclass(frozen=True, slots=True)
class Story:
    name: str
    log: KnownLog
    buffer_bytes: int
    """``log.cleaner.dedupe.buffer.size``."""
    is_distributed: bool
    """Whether the keys are too many for one task."""

    @property
    def log_bytes(self) -> int:
        """About."""
        return self.log.records * (KEY_BYTES + self.log.value_bytes + 8)

    @property
    def needed_bytes(self) -> int:
        """Of free disk: the log, the second copy for which a pass wants room, and what goes through the shuffle."""
        return 2 * self.log_bytes + 25 * self.log.records + GIGABYTE


def many_keys(keys: int) -> Story:
    """The default memory, or, for a try with few keys, so little that they go the same way."""
    log = KnownLog.of(keys, copies=2, value_bytes=10)
    return Story("many-keys", log, max(min(4 * log.keys, BUFFER_BYTES), MEBIBYTE), is_distributed=True)


def large_log(gigabytes: float) -> Story:
    log = KnownLog.of(int(gigabytes * GIGABYTE) // 10_240, copies=10, value_bytes=1000)
    return Story("large-log", log, BUFFER_BYTES, is_distributed=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    story: str
    keys: int
    records: int
    log_bytes: int
    survivors: Survivors
    pass_seconds: float
    """From its being due until its end, Spark's start included."""
    second_pass_seconds: float
    figures: dict[str, Any]
    """What the cleaner's history says of the first pass."""
    peak_bytes: dict[str, int]
    workers: int
    seconds: dict[str, float]
    """What everything took."""

    @property
    def excesses(self) -> dict[str, int]:
        return {role: peak for role, peak in self.peak_bytes.items() if peak > LIMITS.get(role, peak)}


class Soak:
    """One story, in a directory of its own."""

    def __init__(self, story: Story, directory: Path, progress: Progress) -> None:
        self._story = story
        self._progress = progress
        self._admin = f"127.0.0.1:{free_port()}"
        settings = {
            "lamina.spark.master": f"local[{SLOTS}]",
            "lamina.admin.listeners": self._admin,
            "log.cleaner.dedupe.buffer.size": str(story.buffer_bytes),
        }
        self._lamina = Lamina(directory, settings)
        self._partition = self._lamina.data_directory / "logs" / PARTITION
        self._seconds: dict[str, float] = {}
        self._was_distributed = False

    def run(self) -> Outcome:
        log = self._story.log
        try:
            self._lamina.start()
            held_off = ["--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=1"]
            self._command("topics", "create", TOPIC, *held_off)
            self._lamina.kill()  # So that it checks all that it finds.
            self._partition.joinpath(f"{0:020d}.log").unlink()
            with self._step("writing the log", self._story.log_bytes) as bar:
                log_bytes = write_segments(log, self._partition, SEGMENT_BYTES, self._advance(bar))
            with self._step("the broker checks it", None):
                self._lamina.start()
            with PeakMemory(self._lamina.process_id) as memory:
                with self._step("first pass", log_bytes) as bar:
                    first = self._pass(bar, roll=False)
                if self._was_distributed != self._story.is_distributed:
                    raise WrongLog(f"the pass went {'' if self._was_distributed else 'not '}through the shuffle")
                with self._step("reading what is left", self._size()) as bar:
                    survivors = check_survivors(log, self._partition, self._advance(bar))
                self._command("produce", TOPIC, "--tombstone", "one more")
                with self._step("second pass", survivors.size_bytes) as bar:
                    second = self._pass(bar, roll=True)
            with self._step("reading it again", self._size()) as bar:
                again = check_survivors(log, self._partition, self._advance(bar))
            if again.digest != survivors.digest or not again.others:
                raise WrongLog("a second pass changed what the first one had left")
        finally:
            self._end()
        return Outcome(
            self._story.name,
            log.keys,
            log.records,
            log_bytes,
            survivors,
            self._seconds["first pass"],
            self._seconds["second pass"],
            first,
            memory.peaks,
            len(memory.processes.get("worker", ())) - 1,
            {**self._seconds, "second pass, as the cleaner says": second["seconds"]["total"]},
        )

    def _end(self) -> None:
        """Kill the broker, and wait for the engine, which ends by itself: nobody writes in the directory after that."""
        if self._lamina.is_running:
            family = family_of(self._lamina.process_id, parents())
            self._lamina.kill()
            await_end(family, END_SECONDS)

    def _pass(self, bar: TaskID, *, roll: bool) -> dict[str, Any]:
        """Have the topic compacted; returns what the history says of it."""
        since = self._ask("/v1/cleaner")["last_number"]
        token = self._lamina.data_directory / "admin.token"
        self._command("compact", TOPIC, "--token-file", str(token), *["--roll"] * roll)
        deadline = time.monotonic() + LEAST_PASS_SECONDS + self._story.log_bytes / LEAST_BYTES_PER_SECOND
        while not (passes := self._ask(f"/v1/cleaner/history?topic={TOPIC}&since={since}")["passes"]):
            if time.monotonic() > deadline:
                raise WrongLog("the pass was given up: it is far too slow")
            state = self._ask(f"/v1/cleaner?topic={TOPIC}")["partitions"][0]
            self._progress.update(bar, completed=state["done_bytes"] or 0)
            self._was_distributed |= any(self._partition.glob(".lamina-pass-*/scan-*"))
            time.sleep(LOOK_SECONDS)
        if passes[-1]["outcome"] != "cleaned":
            raise WrongLog(f"the pass {passes[-1]['outcome']}: {passes[-1]['reason']}")
        found: dict[str, Any] = passes[-1]
        return found

    def _command(self, *words: str) -> None:
        """What a person would type."""
        line = [*COMMAND, *words, "--bootstrap-server", self._lamina.bootstrap]
        subprocess.run(line, check=True, capture_output=True, timeout=CALL_SECONDS)

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self._admin}{path}", timeout=CALL_SECONDS) as answer:
            return json.load(answer)

    @contextmanager
    def _step(self, name: str, total: int | None) -> Iterator[TaskID]:
        bar = self._progress.add_task(f"{self._story.name}: {name}", total=total)
        began = time.monotonic()
        yield bar
        self._seconds[name] = round(time.monotonic() - began, 2)
        self._progress.update(bar, total=total or 1, completed=total or 1)

    def _size(self) -> int:
        return sum(path.stat().st_size for path in self._partition.glob("*.log"))

    def _advance(self, bar: TaskID) -> Tell:
        return lambda size_bytes: self._progress.advance(bar, size_bytes)


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="soak-cleaner", description="The cleaner under logs that are large.")
    parser.add_argument("--keys", type=int, default=100_000_000, help="of many-keys; each is written twice")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="of large-log")
    parser.add_argument("--only", choices=["many-keys", "large-log"], help="one of the two stories")
    parser.add_argument("--dir", type=Path, help="where the logs are made, instead of the system's temporary directory")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak-cleaner was told to end"))
    outcomes = []
    stories = [many_keys(options.keys), large_log(options.gigabytes)]
    try:
        for story in stories:
            if options.only in (None, story.name):
                outcomes.append(tell(story, options.dir))
    except WrongLog as wrong:
        return f"{story.name}: {wrong}"
    except KeyboardInterrupt:
        return "interrupted; everything that was made is removed"
    if options.json:
        print(json.dumps([{**asdict(each), "limit_bytes": LIMITS} for each in outcomes], indent=2))
    else:
        show(outcomes)
    over = [f"{each.story}: {role}" for each in outcomes for role in each.excesses]
    return f"more memory than stated: {', '.join(over)}" if over else None


def tell(story: Story, parent: Path | None) -> Outcome:
    """One story, from an empty directory to none."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with (
        tempfile.TemporaryDirectory(prefix="lamina-soak-", dir=parent) as scratch,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        free_bytes = shutil.disk_usage(scratch).free
        if free_bytes < story.needed_bytes:
            raise WrongLog(
                f"{scratch} has {free_bytes / GIGABYTE:.1f} GB free, and {story.needed_bytes / GIGABYTE:.1f} are needed"
            )
        return Soak(story, Path(scratch), progress).run()


def show(outcomes: list[Outcome]) -> None:
    console = Console(width=120)
    table = Table("", *(each.story for each in outcomes))
    rows: dict[str, list[str]] = {
        "records → left": [f"{each.records:,} → {each.survivors.records:,}" for each in outcomes],
        "bytes → left": [
            f"{each.log_bytes / GIGABYTE:.2f} → {each.survivors.size_bytes / GIGABYTE:.2f} GB" for each in outcomes
        ],
        "first pass": [f"{each.pass_seconds:.1f} s" for each in outcomes],
        "records/s": [f"{each.records / each.pass_seconds:,.0f}" for each in outcomes],
        "MB/s": [f"{each.log_bytes / 1e6 / each.pass_seconds:,.0f}" for each in outcomes],
        "of that, the job": [
            f"{each.figures['job_seconds']['total']:.1f} s, "
            f"{each.records / each.figures['job_seconds']['total']:,.0f} records/s"
            for each in outcomes
        ],
        "second pass": [f"{each.second_pass_seconds:.1f} s, nothing changed" for each in outcomes],
    }
    for role in ROLES:
        name = f"peak memory of {'the largest worker' if role == 'worker' else role}"
        rows[name] = [
            f"{each.peak_bytes.get(role, 0) / MEBIBYTE:,.0f} of {LIMITS[role] / MEBIBYTE:,.0f} MiB"
            f"{' ✗' if role in each.excesses else ''}"
            for each in outcomes
        ]
    for name, cells in rows.items():
        table.add_row(name, *cells)
    console.print(table)
    for each in outcomes:
        console.print(f"{each.story}: " + ", ".join(f"{name} {spent:g} s" for name, spent in each.seconds.items()))
        console.print(f"  of the first pass {json.dumps(each.figures['job_seconds'])}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
