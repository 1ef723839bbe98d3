"""The engine: a process with Spark in it that cleans logs for one broker.

Owns the process. It reads orders on its standard input and answers on its standard output (``cleaning.orders``), and it
ends when that input does, Java with it: an engine never outlives its broker. Spark's own talk goes to the standard
error. Must not know how a log is cleaned.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import BinaryIO, NoReturn

from lamina.cleaning.answers import Answer, Progress, dump_line
from lamina.cleaning.contract import ContractError, Plan
from lamina.cleaning.orders import SAID_WHY, Cancel, Clean, Start, Started, dump_started, load_order
from lamina.pipeline.session import Session

_PROGRESS_SECONDS = 0.5
_WATCH_SECONDS = 0.5
_TIMES_OVER_THE_LOG = 3
"""How often the bytes of a log go by, about: checked, read for keys, read again to be rewritten."""


class Engine:
    def __init__(self, orders: BinaryIO, out: BinaryIO) -> None:
        self._orders = orders
        self._out = out
        self._saying = threading.Lock()
        self._active: dict[str, Plan] = {}
        self._session: Session | None = None
        self._is_up = threading.Event()
        self._trouble: str | None = None
        self._giving_up = threading.Lock()

    def run(self) -> NoReturn:
        """Until the broker is gone, or has enough."""
        threading.Thread(target=self._tell_progress, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()
        for line in self._orders:
            try:
                order = load_order(line)
            except ContractError as error:
                self._end(str(error))
            match order:
                case Start():
                    self._session = Session(
                        order.master, {entry.name: entry.value for entry in order.conf}, order.directory
                    )
                    threading.Thread(target=self._start, args=(self._session,), daemon=True).start()
                case Clean():
                    threading.Thread(target=self._clean, args=(order.plans,), daemon=True).start()
                case Cancel():
                    self._cancel(order.plan_id)
        self._end()

    def _end(self, trouble: str = "") -> NoReturn:
        if self._session is not None:
            self._session.close()
        if trouble:
            print(trouble, file=sys.stderr)
        sys.stderr.flush()
        os._exit(SAID_WHY if trouble else 0)

    def _start(self, session: Session) -> None:
        loading = threading.Thread(target=_load, daemon=True)
        loading.start()
        try:
            session.open()
            loading.join()
            from pyspark import __version__

            started = Started(__version__, session.java, session.slots, round(session.seconds, 3))
            self._write(dump_started(started))
        except Exception as error:
            traceback.print_exc()
            from lamina.pipeline.trouble import start_sentence

            self._trouble = start_sentence(error, session.master)
        self._is_up.set()

    def _clean(self, plans: Sequence[Plan]) -> None:
        self._is_up.wait()
        for plan in plans:
            self._active[plan.plan_id] = plan
        if self._trouble is not None:
            self._give_up(self._trouble)
        from lamina.pipeline.compact import clean_batch

        assert self._session is not None
        try:
            clean_batch(self._session, plans, self._answer)
        except Exception as error:
            traceback.print_exc()
            self._give_up(str(error) or type(error).__name__)

    def _give_up(self, trouble: str) -> NoReturn:
        """End, which fails all that is under way: the next pass is to find a new engine, never this one."""
        self._giving_up.acquire()  # For good: who comes second has nothing to add.
        self._end(trouble)

    def _watch(self) -> None:
        """End when Spark has, so that no pass comes to find it so, and when a cluster would have one wait for ever."""
        self._is_up.wait()
        session = self._session
        if self._trouble is not None or session is None:
            return
        waiting = threading.Event()
        seen_at = time.monotonic()
        while not waiting.wait(_WATCH_SECONDS):
            if not session.is_alive:
                waiting.wait(_WATCH_SECONDS)  # Who is in a job has more to say of it.
                self._give_up(f"Spark on {session.master} has ended")
            if not self._active or session.is_local or session.executors:
                seen_at = time.monotonic()
            elif time.monotonic() - seen_at > session.patience_seconds:
                self._give_up(f"{session.master} has given no executor for {session.patience_seconds:.0f} s")

    def _cancel(self, plan_id: str) -> None:
        """Tell the tasks of a plan where they look: in its folder."""
        from lamina.pipeline.tasks import CANCELLED

        plan = self._active.get(plan_id)
        if plan is not None:
            try:
                os.close(os.open(f"{plan.pass_folder}/{CANCELLED}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            except OSError:
                return  # The folder is gone, and they see that too.

    def _answer(self, answer: Answer) -> None:
        self._active.pop(answer.plan_id, None)
        self._write(dump_line(answer))

    def _tell_progress(self) -> None:
        told: dict[str, int] = {}
        self._is_up.wait()
        if self._trouble is not None:
            return
        from lamina.pipeline.tasks import read_progress

        waiting = threading.Event()
        while not waiting.wait(_PROGRESS_SECONDS):
            for plan_id, plan in list(self._active.items()):
                total_bytes = sum(segment.size_bytes for segment in plan.segments)
                done_bytes = min(read_progress(plan) // _TIMES_OVER_THE_LOG, total_bytes)
                if done_bytes > told.get(plan_id, 0):
                    told[plan_id] = done_bytes
                    self._write(dump_line(Progress(plan_id, done_bytes, total_bytes)))
            told = {plan_id: done for plan_id, done in told.items() if plan_id in self._active}

    def _write(self, line: bytes) -> None:
        try:
            with self._saying:
                self._out.write(line)
                self._out.flush()
        except OSError:
            self._end()  # Nobody listens any more.


def _load() -> None:
    """The kernels, while Java starts: compiled here if need be, so that every worker finds them compiled."""
    import lamina.pipeline.compact  # noqa: F401


def main() -> None:
    # Whatever prints, in this process or in Java, must not get between the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Engine(sys.stdin.buffer, out).run()
