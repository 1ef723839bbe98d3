"""``python -m lamina.cleaning``: carries out plans that come in on stdin, and answers each on stdout.

It speaks ``engine_messages``, and does one plan at a time, the smallest first, so that none waits for a huge one that
has not begun. It exits when stdin is closed, whatever it is doing: then no result is wanted any more. Must not know
who asks.
"""

import os
import sys
import threading
import traceback
from functools import partial
from typing import BinaryIO, NoReturn

from lamina.cleaning.contract import ContractError, Plan
from lamina.cleaning.engine_messages import Answer, Cancel, Clean, Progress, dump_line, load_order
from lamina.cleaning.job import carry_out
from lamina.cleaning.limits import lower_priority

_FAILED, _BAD_ORDER = 1, 2


class Worker:
    """The plans that are to be done, and the one that is being done."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._changed = threading.Condition()
        self._plans: dict[str, Plan] = {}
        self._doing: str | None = None

    def add(self, plan: Plan) -> None:
        with self._changed:
            self._plans[plan.plan_id] = plan
            self._changed.notify()

    def cancel(self, plan_id: str) -> None:
        with self._changed:
            self._plans.pop(plan_id, None)
            if self._doing == plan_id:
                self._doing = None

    def work(self) -> NoReturn:
        try:
            while True:
                plan = self._take()
                self._say(carry_out(plan, partial(self._tell, plan), partial(self._is_cancelled, plan)))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(_FAILED)

    def _is_cancelled(self, plan: Plan) -> bool:
        return self._doing != plan.plan_id

    def _take(self) -> Plan:
        with self._changed:
            self._changed.wait_for(lambda: self._plans)
            plan = min(self._plans.values(), key=lambda plan: plan.source_bytes)
            self._doing = plan.plan_id
            return self._plans.pop(plan.plan_id)

    def _tell(self, plan: Plan, done_bytes: int) -> None:
        self._say(Progress(plan.plan_id, done_bytes, plan.source_bytes))

    def _say(self, said: Progress | Answer) -> None:
        self._out.write(dump_line(said))
        self._out.flush()


def run(orders: BinaryIO, out: BinaryIO) -> int:
    worker = Worker(out)
    threading.Thread(target=worker.work, daemon=True).start()
    for line in orders:
        try:
            order = load_order(line)
        except ContractError as error:
            print(error, file=sys.stderr)
            return _BAD_ORDER
        match order:
            case Clean():
                worker.add(order.plan)
            case Cancel():
                worker.cancel(order.plan_id)
    return 0


if __name__ == "__main__":
    lower_priority()
    status = run(sys.stdin.buffer, sys.stdout.buffer)
    sys.stderr.flush()
    # Not an ordinary end, which would wait for the thread that works.
    os._exit(status)
