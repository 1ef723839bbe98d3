"""Copies of one topic to another, as whoever runs such a program has them: one that hangs is replaced.

Must not know what is done to brokers.
"""

from contextlib import ExitStack
from types import TracebackType

from tests.cluster.copying import HANGING
from tests.cluster.exactly_once_copy import CopyProcess
from tests.cluster.faults.story import Story
from tests.history.events import History


class Copies:
    """As a context: all of them end with it."""

    def __init__(self, bootstrap: str, source: str, target: str, a_transaction: int, story: Story) -> None:
        self.all: list[CopyProcess] = []
        self._where = bootstrap, source, target
        self._a_transaction = a_transaction
        self._story = story
        self._running = ExitStack()

    def __enter__(self) -> "Copies":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.__exit__(kind, error, trace)

    @property
    def newest(self) -> CopyProcess:
        return self.all[-1]

    @property
    def copied(self) -> int:
        """By all of them."""
        return sum(copy.copied for copy in self.all)

    def start(self) -> CopyProcess:
        name = f"copy-{len(self.all) + 1}"
        self._story.tell(f"starting {name}")
        kept = self._story.directory / f"{name}.jsonl"
        self.all.append(CopyProcess(*self._where, name, self._a_transaction, kept))
        return self._running.enter_context(self.newest)

    def await_copied(self, more: int, seconds: float) -> None:
        """Until so many more are copied than are now; the newest must not fail, unless it is its client's fault."""
        records = self.copied + more
        self._story.within(
            seconds,
            f"{records} records are copied",
            lambda: self.replaced_if_it_hangs() and self.copied >= records,
            lambda: f"{self.copied} are",
        )

    def replaced_if_it_hangs(self) -> bool:
        failure = self.newest.failure
        if failure is not None:
            self._story.tell(f"{self.newest.name} ended with {failure}")
            assert failure.error == HANGING
            self.start()
        return True

    def add_to(self, history: History) -> None:
        for copy in self.all:
            copy.add_to(history, self._story.now_ms)
