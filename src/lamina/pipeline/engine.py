"""The engine: a process with Spark in it that cleans logs for one broker.

Owns the process. It reads orders on its standard input and answers on its standard output
(``cleaning.engine_messages``). When that input is closed it exits, and its JVM with it: an engine never outlives its
broker. Spark's own output goes to the standard error. Must not know how a log is cleaned.
"""

import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from lamina.cleaning.contract import ContractError, Plan
from lamina.cleaning.engine_messages import (
    SAID_WHY,
    Answer,
    Cancel,
    Clean,
    Progress,
    Start,
    Started,
    dump_line,
    dump_started,
    load_order,
)
from lamina.cleaning.limits import lower_priority
from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause
from lamina.pipeline.session import Session

if TYPE_CHECKING:
    from lamina.pipeline.compact import Compaction

_PROGRESS_SECONDS = 0.5
_WATCH_SECONDS = 0.5
_TIMES_OVER_THE_LOG = 3
"""How often the bytes of a log go by, about: checked, read for keys, read again to be rewritten."""


class Engine:
    def __init__(self, orders: BinaryIO, out: BinaryIO, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._clocks = clocks
        self._orders = orders
        self._out = out
        self._saying = threading.Lock()
        self._open: dict[str, Plan] = {}
        self._session: Session | None = None
        self._taking = threading.Lock()
        self._giving_up = threading.Lock()
        self._compaction: Compaction | None = None

    def run(self) -> NoReturn:
        """Until the broker closes the standard input."""
        for line in self._orders:
            try:
                order = load_order(line)
            except ContractError as error:
                self._end(str(error))
            match order:
                case Start():
                    self._session = Session(
                        order.master, {entry.name: entry.value for entry in order.conf}, order.directory, self._clocks
                    )
                    threading.Thread(target=self._start, args=(self._session,), daemon=True).start()
                case Clean():
                    self._take(order.plan)
                case Cancel():
                    self._cancel(order.plan_id)
        self._end()

    def _end(self, reason: str = "") -> NoReturn:
        if self._session is not None:
            self._session.close()
        if reason:
            print(reason, file=sys.stderr)
        sys.stderr.flush()
        os._exit(SAID_WHY if reason else 0)

    def _start(self, session: Session) -> None:
        loading = threading.Thread(target=_load, daemon=True)
        loading.start()
        try:
            session.open()
            loading.join()
            from pyspark import __version__

            from lamina.pipeline.compact import Compaction

            started = Started(__version__, session.java, session.slots, round(session.seconds, 3))
        except Exception as error:
            self._refuse(error)
        self._write(dump_started(started))
        with self._taking:
            compaction = self._compaction = Compaction(session, self._answer, self._lose)
            waiting = list(self._open.values())
        for plan in waiting:
            compaction.add(plan)
        threading.Thread(target=self._watch, args=(session,), daemon=True).start()
        self._tell_progress(compaction)

    def _refuse(self, error: Exception) -> NoReturn:
        """Spark does not start: all plans fail with the reason."""
        traceback.print_exception(error)
        from lamina.pipeline.spark_errors import start_sentence

        assert self._session is not None
        self._give_up(start_sentence(error, self._session.master))

    def _lose(self, error: Exception) -> NoReturn:
        """Spark has ended or failed unexpectedly: the next plan gets another engine."""
        traceback.print_exception(error)
        self._give_up(str(error) or type(error).__name__)

    def _give_up(self, reason: str) -> NoReturn:
        """End, which fails all that is under way: the next pass must find a new engine, never this one."""
        self._giving_up.acquire()  # Never released: the first reason is the one that is told.
        self._end(reason)

    def _watch(self, session: Session) -> None:
        """End when Spark has ended, and when a cluster gives no executor: no pass waits for ever."""
        waiting = threading.Event()
        seen_at = self._clocks.monotonic_seconds()
        while not waiting.wait(_WATCH_SECONDS):
            if not session.is_alive:
                waiting.wait(_WATCH_SECONDS)  # A job that fails of it has a better reason.
                self._give_up(f"Spark on {session.master} has ended")
            if not self._open or session.is_local or session.executors:
                seen_at = self._clocks.monotonic_seconds()
            elif self._clocks.monotonic_seconds() - seen_at > session.patience_seconds:
                self._give_up(f"{session.master} has given no executor for {session.patience_seconds:.0f} s")

    def _take(self, plan: Plan) -> None:
        with self._taking:
            self._open[plan.plan_id] = plan
            compaction = self._compaction
        if compaction is not None:
            compaction.add(plan)

    def _cancel(self, plan_id: str) -> None:
        """Do not begin a plan; tasks that work on it see a file in its folder."""
        with self._taking:
            plan = self._open.pop(plan_id, None)
            compaction = self._compaction
        if plan is None or compaction is None or compaction.drop(plan_id):
            return
        from lamina.pipeline.tasks import CANCELLED

        try:
            os.close(os.open(f"{plan.pass_folder}/{CANCELLED}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return  # The folder is gone, which tasks see too.

    def _answer(self, answer: Answer) -> None:
        with self._taking:
            self._open.pop(answer.plan_id, None)
        self._write(dump_line(answer))

    def _tell_progress(self, compaction: "Compaction") -> NoReturn:
        from lamina.pipeline.tasks import read_progress

        told: dict[str, int] = {}
        while True:
            begun = {plan.plan_id: plan for plan in compaction.begun}
            for plan_id, plan in begun.items():
                done_bytes = min(read_progress(plan).size_bytes // _TIMES_OVER_THE_LOG, plan.source_bytes)
                if done_bytes > told.get(plan_id, 0):
                    told[plan_id] = done_bytes
                    self._write(dump_line(Progress(plan_id, done_bytes, plan.source_bytes)))
            told = {plan_id: done for plan_id, done in told.items() if plan_id in begun}
            pause(_PROGRESS_SECONDS)

    def _write(self, line: bytes) -> None:
        try:
            with self._saying:
                self._out.write(line)
                self._out.flush()
        except OSError:
            self._end()  # The broker is gone.


def _load() -> None:
    """The kernels, while Java starts: compiled here if need be, so that every worker finds them compiled."""
    import lamina.pipeline.compact  # noqa: F401


def main() -> None:
    lower_priority()
    # What this process or Java prints must not get between the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Engine(sys.stdin.buffer, out).run()
