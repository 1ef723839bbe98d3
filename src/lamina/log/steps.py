"""How a change of a log that waits for the disk is done: in steps.

The log is sound after each of them, in memory and, after a crash, on disk. Must not know what the steps do.
"""

from collections.abc import Callable, Iterator

Step = Callable[[], None]
"""Work on files that any thread may do: it waits for the disk and touches no state of the log."""

Steps = Iterator[Step]
"""What a change of the log waits for. Each step is asked for, and begun, on the log's own thread; when it is done the
next one is asked for there."""


def run_steps(steps: Steps) -> None:
    """Take every step on this thread."""
    for step in steps:
        step()
