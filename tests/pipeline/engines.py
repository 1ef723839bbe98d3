"""Real engines for tests, the processes that belong to them, and passes that stop in the middle."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from lamina.broker.cleaner.spark_engine import SparkEngine
from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.engine_messages import Answer
from lamina.pipeline.tasks import PROGRESS
from tests.cleaning.passes import plan_of
from tests.compaction.story import Story

PATIENCE_SECONDS = 300.0


def a_plan(directory: Path, *, keys: int = 17, segments: int = 4, **changes: object) -> Plan:
    """A pass over a small log: every key again and again, in every segment."""
    story = Story()
    for number in range(segments):
        pairs: list[tuple[bytes | None, bytes | None]] = [(b"key %d" % key, b"%d" % number) for key in range(keys)]
        for start in range(0, keys, 200):
            story.write(pairs[start : start + 200])
        story.roll()
    return plan_of(directory, story, story.pass_at(0, 1000, frozenset()), **changes)


def an_engine(
    directory: Path, master: str = "local[2]", conf: Mapping[str, str] | None = None, idle_stop_ms: int = 600_000
) -> SparkEngine:
    return SparkEngine(str(directory), master, conf or {}, idle_stop_ms)


def output_of(plan: Plan, answer: Answer) -> list[tuple[str, bytes]]:
    """What a pass wrote, without the attempts' names."""
    assert isinstance(answer, Manifest), answer
    return [
        (file.extension, Path(plan.pass_folder, file.name).read_bytes())
        for group in answer.groups
        for file in group.files
    ]


async def clean_all(engine: SparkEngine, *plans: Plan) -> list[Answer]:
    """The answers to plans that are open at the same time, in their order."""
    return await asyncio.gather(*(engine.clean(plan, lambda *_: None) for plan in plans))


class Hold:
    """Stops a pass where it opens its first source, for as long as a test likes."""

    def __init__(self, pass_folder: Path | str) -> None:
        self._folder = Path(pass_folder)
        self._path = min(self._folder.glob("*.log"))
        self._data = self._path.read_bytes()
        self._path.unlink()
        os.mkfifo(self._path)

    def is_reached(self) -> bool:
        """The task has said that it begins; the next thing that it does is to open its sources."""
        return any(self._folder.glob(f"*{PROGRESS}"))

    def await_reader(self) -> None:
        """Until somebody opens the source."""
        os.close(os.open(self._path, os.O_WRONLY))

    def lift(self) -> None:
        """From now on the source is there. Who was stopped is let go, and finds no log in what it opened."""
        with suppress(OSError):
            os.close(os.open(self._path, os.O_WRONLY | os.O_NONBLOCK))
        self.replace()

    def replace(self) -> None:
        """From now on the source is there; who was stopped stays so."""
        whole = self._path.with_suffix(".whole")
        whole.write_bytes(self._data)
        os.replace(whole, self._path)


class HoldRewriting:
    """Stops a pass that goes through the shuffle where it begins to rewrite its first group, for good."""

    def __init__(self, plan: Plan) -> None:
        self._folder = Path(plan.pass_folder)
        os.mkfifo(self._folder / f"rewrite-0{PROGRESS}")

    def is_reached(self) -> bool:
        """The keys are being scanned, or more than that: it is somewhere in the middle."""
        return any(self._folder.glob(f"scan-*{PROGRESS}"))


def processes_of(directory: Path, *words: str) -> set[int]:
    """The processes that were started for an engine in ``directory``, and have all the words in their command."""
    mark = str(directory).encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            around = (entry / "environ").read_bytes()
            is_over = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if not is_over and (mark in command or mark in around) and all(word.encode() in command for word in words):
            found.add(int(entry.name))
    return found


def workers_of(directory: Path) -> set[int]:
    """The Python workers of an engine: what the daemon has forked."""
    daemons = processes_of(directory, "lamina.pipeline.daemon")
    return {pid for pid in daemons if _parent(pid) in daemons}


def attempts_in(pass_folder: Path | str) -> set[str]:
    """The attempts of which there are files in the folder of a pass."""
    return {path.name.split(".")[2] for path in Path(pass_folder).glob("*.*.*.log")}


def writers_in(pass_folder: Path | str) -> set[int]:
    """The processes that are writing new segments there."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            targets = [os.readlink(link) for link in (entry / "fd").iterdir()] if entry.name.isdigit() else []
        except OSError:
            continue
        if any(target.startswith(str(pass_folder)) and target.count(".") > 3 for target in targets):
            found.add(int(entry.name))
    return found


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
