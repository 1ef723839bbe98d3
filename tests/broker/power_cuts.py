"""A broker in process on a disk that remembers: its power is cut after any operation, and it starts on what is left."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from lamina.broker.parts import Parts
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.log import directory
from lamina.storage import METADATA_DB
from lamina.store.copying import copy_store
from lamina.store.interface import Operation
from tests.broker.in_process import InProcessBroker
from tests.log.disk import RecordingDisk

EVERYTHING_FLUSHED = {"log.flush.interval.messages": "1"}
IN_TURN = {"num.recovery.threads.per.data.dir": "1"}


class AtOnce(Executor):
    """Does in turn, on the loop itself, what threads would do: so that the same requests touch the disk alike."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **named))
        except BaseException as error:
            future.set_exception(error)
        return future


class Interleaved(Executor):
    """Does on the loop what threads would do, each piece in a turn that ``rng`` chooses.

    So pieces of different pools overtake each other, and those of one pool too, unless it has one thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: Random, count: int) -> None:
        self._loop = loop
        self._rng = rng
        self._count = count
        self._left: dict[int, Callable[[], None]] = {}
        self._submitted = 0

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def carry_out() -> None:
            try:
                result = work(*args, **named)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._submitted += 1
        self._left[self._submitted] = carry_out
        turns = self._rng.randint(1, 60) if self._rng.random() < 0.3 else 0
        self._loop.call_soon(self._wait, self._submitted, turns)
        return future

    def _wait(self, number: int, turns: int) -> None:
        if turns:
            self._loop.call_soon(self._wait, number, turns - 1)
        elif number in self._left:
            for one in [one for one in self._left if one < number and self._count == 1] + [number]:
                self._left.pop(one)()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """What is left is done now, as threads do before they end."""
        while self._left:
            self._left.pop(min(self._left))()


class PowerCutBroker(InProcessBroker):
    """Everything that it acknowledges is on disk; of the rest a power cut takes what it likes."""

    def __init__(self, root: Path, settings: Mapping[str, str]) -> None:
        self._root = root
        self._lives = 0
        self.passed_ms = 0
        """How far the clocks are ahead of the real ones."""
        self._place(root / "0")
        clocks = Clocks(self._ahead(SYSTEM_CLOCKS.wall_ns), self._ahead(SYSTEM_CLOCKS.monotonic_ns))
        super().__init__(root / "0/data", {**EVERYTHING_FLUSHED, **IN_TURN, **settings, **self._given}, clocks)

    def _place(self, path: Path) -> None:
        self._path = path
        (path / "disk").mkdir(parents=True, exist_ok=True)
        self.disk = RecordingDisk(str(path / "disk"))
        self._given = {"log.dirs": str(path / "disk/logs"), "lamina.data.dir": str(path / "data")}

    def _open(self) -> Parts:
        with mock.patch.object(directory, "Disk", return_value=self.disk):
            return super()._open()

    def _prepare(self, parts: Parts) -> None:
        self._remember_metadata(parts)
        for threads, count in ((parts.threads, 4), *((one, 1) for one in parts.threads._separate)):
            threads._executor = self._new_executor(count)
            # Also of those that open logs while the loop takes others over.
            threads._new_executor = lambda count, _name: self._new_executor(count)

    def _new_executor(self, count: int) -> Executor:
        return AtOnce()

    def _ahead(self, clock: Callable[[], int]) -> Callable[[], int]:
        return lambda: clock() + self.passed_ms * 1_000_000

    def _remember_metadata(self, parts: Parts) -> None:
        """Keep what the metadata is after each of its changes, and how many operations the logs' disk had seen."""
        self._metadata: list[tuple[int, Path]] = []
        store = parts.storage.database
        transact = store.transact

        def remember() -> None:
            target = self._path / f"metadata-{len(self._metadata)}.db"
            copy_store(str(self._path / "data" / METADATA_DB), str(target))
            self._metadata.append((len(self.disk.ops), target))

        def remembered(operations: Sequence[Operation]) -> None:
            transact(operations)
            remember()

        remember()
        store.transact = remembered  # type: ignore[method-assign]

    def cut_power(self, prefix: int, rng: Random) -> None:
        """After the first ``prefix`` operations of this life; what came later never was."""
        self._loop.run_until_complete(self.parts.transactions.close())
        self.parts.groups.runtime.close()
        self._loop.run_until_complete(self.parts.moves.stop())
        self._loop.run_until_complete(self.parts.kernel_loading.stop())
        self.parts.storage.release()
        self.parts.threads.close()
        self._loop.close()
        self._lives += 1
        old, new = self._path, self._root / str(self._lives)
        self.disk.crash(prefix, rng, str(new / "disk"))
        (new / "data").mkdir()
        copies = [copy for ops, copy in self._metadata if ops <= prefix] or [self._metadata[0][1]]
        shutil.copy(copies[-1], new / "data" / METADATA_DB)
        shutil.rmtree(old)
        given = self._given
        self._place(new)
        self._given = given | self._given
        self.parts = self._open()
        self.settle()
