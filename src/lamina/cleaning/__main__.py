"""``python -m lamina.cleaning``: does plans that come in on stdin, and tells on stdout what became of each.

One plan a line, then an empty line; answers as ``answers.py`` has them. Ends when stdin does, whatever it is doing:
then nobody waits for the result any more. Must not know who asks.
"""

import os
import sys
import threading
from functools import partial
from typing import BinaryIO

from lamina.cleaning.answering import do
from lamina.cleaning.answers import Answer, Progress, dump_line
from lamina.cleaning.contract import ContractError, Plan, load

_BAD_PLAN, _ALONE = 2, 3


def run(given: BinaryIO, out: BinaryIO) -> int:
    plans: list[Plan] = []
    for line in given:
        if not line.strip():
            break
        try:
            plans.append(load(Plan, line))
        except ContractError as error:
            print(error, file=sys.stderr)
            return _BAD_PLAN
    threading.Thread(target=_end_with, args=(given,), daemon=True).start()
    for plan in plans:
        _say(out, do(plan, partial(_tell, out, plan)))
    return 0


def _tell(out: BinaryIO, plan: Plan, done_bytes: int) -> None:
    _say(out, Progress(plan.plan_id, done_bytes, sum(segment.size_bytes for segment in plan.segments)))


def _say(out: BinaryIO, said: Progress | Answer) -> None:
    out.write(dump_line(said))
    out.flush()


def _end_with(given: BinaryIO) -> None:
    given.read()
    os._exit(_ALONE)


if __name__ == "__main__":
    status = run(sys.stdin.buffer, sys.stdout.buffer)
    # Not an ordinary end, which would wait for the thread that reads stdin.
    os._exit(status)
