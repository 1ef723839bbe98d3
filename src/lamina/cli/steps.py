"""Running work that goes on in steps, with a bar for a person who watches.

Must not know what the work is.
"""

import sys
from collections.abc import Callable, Generator
from typing import TypeVar

from lamina.log.backup.copier import Step

T = TypeVar("T")
Steps = Generator[Step, None, T]


def run_steps(title: str, begin: Callable[[Callable[[int], None]], Steps[T]]) -> T:
    """Run to the end; ``begin`` is given what has to be told the total bytes, as soon as they are known."""
    if not sys.stderr.isatty():
        return _run(begin(lambda _total_bytes: None), lambda _step: None)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (title, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        steps = begin(lambda total_bytes: bar.update(task, total=total_bytes))
        return _run(steps, lambda step: bar.advance(task, step.done_bytes))


def _run(steps: Steps[T], tell: Callable[[Step], None]) -> T:
    try:
        while True:
            tell(next(steps))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        # Undoes what an interruption leaves.
        steps.close()
