"""One engine process, from its start to its end: orders go to its standard input, answers come on its standard output.

Owns the process and the plans that it has not answered. It ends when its standard input does, so it never outlives this
broker. An answer to a plan that is not open is thrown away. Must not know what a pass is, nor how it is done.
"""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress

from lamina.cleaning.contract import ContractError, Plan
from lamina.cleaning.engine_messages import (
    SAID_WHY,
    Answer,
    Cancel,
    Clean,
    Failure,
    Order,
    Started,
    dump_order,
    load_said,
)
from lamina.cleaning.engine_messages import Progress as SaidProgress
from lamina.cleaning.kernel_cache import COMPILING

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Told how many of how many bytes are done; called on the loop."""

STOPPED = "the broker stops"
_LONGEST_LINE_BYTES = 256 * 1024 * 1024
_SHOWN_BYTES = 4096
_END_SECONDS = 5.0


class EngineChild:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: dict[str, tuple[asyncio.Future[Answer], Progress]] = {}
        self._last_output = b""
        self._reason: str | None = None
        self._sending = asyncio.Lock()
        self._listening = asyncio.ensure_future(self._listen())
        self.is_over = False
        self.is_compiling = False
        """Whether it has begun to compile kernels, and nothing has come of any plan since."""
        self.has_spark = False

    async def send(self, order: Order) -> None:
        line = await asyncio.get_running_loop().run_in_executor(None, dump_order, order)
        async with self._sending:
            with suppress(ConnectionError):
                await self._write(line).drain()

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        found: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[plan.plan_id] = (found, progress)
        if self.is_over:
            self._fail_all()
        await self.send(Clean(plan))
        return await found

    def cancel(self, plan_id: str) -> None:
        """Answer it as failed now; the process is told to stop working on it."""
        found, _ = self._waiting.pop(plan_id, (None, None))
        if found is not None and not found.done():
            found.set_result(Failure(plan_id, "the pass was cancelled"))
            with suppress(ConnectionError):
                self._write(dump_order(Cancel(plan_id)))

    def _write(self, line: bytes) -> asyncio.StreamWriter:
        """To nobody once the pipe is being closed: what is open then is answered when the process has ended."""
        stdin = self._process.stdin
        assert stdin is not None
        if not stdin.is_closing():
            stdin.write(line)
        return stdin

    async def _listen(self) -> None:
        """Take answers until the process ends."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        logging_output = asyncio.ensure_future(self._log_engine_output())
        try:
            while line := await self._process.stdout.readline():
                self._take(await asyncio.get_running_loop().run_in_executor(None, load_said, line))
        except (ContractError, ValueError) as error:
            self._reason = self._reason or f"the engine failed: {error}"
            _kill(self._process)
        finally:
            self._process.stdin.close()
        status = await self._process.wait()
        await asyncio.wait({logging_output}, timeout=1.0)
        self.is_over = True
        if self._reason is None:
            last = self._last_output.decode(errors="replace").strip().rpartition("\n")[2]
            ended = f"the engine ended with status {status}"
            self._reason = last if last and status == SAID_WHY else ended + (f": {last}" if last else "")
        _kill(self._process)
        self._fail_all()
        await logging_output

    def _take(self, said: Started | SaidProgress | Answer) -> None:
        if isinstance(said, Started):
            self.has_spark = True
            logger.info(
                "Spark %s was started in %.1f s, with %s, on %s",
                said.spark,
                said.seconds,
                "1 slot" if said.slots == 1 else f"{said.slots} slots",
                said.java,
            )
        elif isinstance(said, SaidProgress):
            self.is_compiling = self.is_compiling and not said.done_bytes
            if said.plan_id in self._waiting:
                self._waiting[said.plan_id][1](said.done_bytes, said.total_bytes)
        elif said.plan_id in self._waiting:
            self.is_compiling = False
            found, _ = self._waiting.pop(said.plan_id)
            if not found.done():
                found.set_result(said)

    def _fail_all(self) -> None:
        for plan_id, (found, _) in self._waiting.items():
            if not found.done():
                found.set_result(Failure(plan_id, self._reason or "the engine ended"))
        self._waiting.clear()

    async def _log_engine_output(self) -> None:
        """The standard error goes to the log at level DEBUG; its last line may say why the engine ended.

        A first compilation is said at level INFO: nothing else explains why a first pass takes so long.
        """
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(65536):
            self._last_output = (self._last_output + piece)[-_SHOWN_BYTES:]
            for line in piece.decode(errors="replace").splitlines():
                if line == COMPILING:
                    self.is_compiling = True
                    logger.info("%s", line)
                else:
                    logger.debug("engine: %s", line)

    async def end(self, reason: str) -> None:
        """Close its standard input and wait for its end, which comes at once, whatever it is doing."""
        self._reason = self._reason or reason
        await end_process(self._process)
        await self._listening


async def spawn(module: str, *arguments: str, reads_output: bool = True) -> Process:
    # -P: the working directory is no place to import from. A session of its own: the terminal's Ctrl-C is the broker's.
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        module,
        *arguments,
        stdin=PIPE,
        stdout=PIPE if reads_output else DEVNULL,
        stderr=PIPE if reads_output else DEVNULL,
        limit=_LONGEST_LINE_BYTES,
        start_new_session=True,
    )


async def end_process(process: Process) -> None:
    """Close its standard input, at which it exits; kill one that does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_SECONDS)
    except TimeoutError:
        _kill(process)


def _kill(process: Process) -> None:
    """The process and what it started, which is in its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
