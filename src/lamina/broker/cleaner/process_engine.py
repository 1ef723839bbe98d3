"""An engine without Spark: a child process that does one plan after another, ``python -m lamina.cleaning``.

Owns the child: started for a batch of plans, told its plans by lines on its stdin, listened to on its stdout. It ends
when that stdin does, so it never outlives its broker. Must not know what a pass is.
"""

import asyncio
import importlib.util
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from lamina.broker.cleaner.engine import Progress
from lamina.cleaning.answers import Answer, Failure, load_line
from lamina.cleaning.answers import Progress as SaidProgress
from lamina.cleaning.contract import ContractError, Plan, dump

_NEEDED = ("numba", "numpy")
_LONGEST_LINE_BYTES = 256 * 1024 * 1024
_SHOWN_BYTES = 4096


class ProcessEngine:
    def __init__(self, module: str = "lamina.cleaning") -> None:
        self._module = module
        self._process: Process | None = None
        self._is_stopped = False

    def missing(self) -> str | None:
        lacking = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if not lacking:
            return None
        return f'{" and ".join(lacking)} not installed: pip install "lamina[spark]"'

    async def clean(self, plans: Sequence[Plan], progress: Progress) -> list[Answer]:
        found: dict[str, Answer] = {}
        reason = "the broker stops"
        if not self._is_stopped:
            # -P: the working directory is no place to import from.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                self._module,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=_LONGEST_LINE_BYTES,
            )
            try:
                reason = await self._listen(self._process, plans, progress, found)
            finally:
                if self._process.returncode is None:
                    self._process.kill()
                await self._process.wait()
                self._process = None
        return [found.get(plan.plan_id) or Failure(plan.plan_id, reason) for plan in plans]

    async def _listen(
        self, process: Process, plans: Sequence[Plan], progress: Progress, found: dict[str, Answer]
    ) -> str:
        """Returns why those that were not answered were not."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        grumbling = asyncio.ensure_future(_last_bytes(process.stderr))
        try:
            process.stdin.write(b"".join(dump(plan) + b"\n" for plan in plans) + b"\n")
            await process.stdin.drain()
            while len(found) < len(plans) and (line := await process.stdout.readline()):
                said = load_line(line)
                if isinstance(said, SaidProgress):
                    progress(said.plan_id, said.done_bytes, said.total_bytes)
                else:
                    found[said.plan_id] = said
        except (ContractError, ConnectionError, ValueError) as error:
            grumbling.cancel()
            return f"the cleaning process said what nobody understands: {error}"
        finally:
            process.stdin.close()
        if self._is_stopped:
            grumbling.cancel()
            return "the broker stops"
        status = await process.wait()
        said_last = (await grumbling).decode(errors="replace").strip().rpartition("\n")[2]
        return f"the cleaning process ended with status {status}" + (f": {said_last}" if said_last else "")

    def cancel(self, plan_id: str) -> None:
        """One child does the plans in turn; what nobody wants is thrown away when it comes."""

    async def stop(self) -> None:
        self._is_stopped = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


async def _last_bytes(stream: asyncio.StreamReader) -> bytes:
    last = b""
    while piece := await stream.read(65536):
        last = (last + piece)[-_SHOWN_BYTES:]
    return last
