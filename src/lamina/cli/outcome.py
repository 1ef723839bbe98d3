"""How a command ends: its exit status, and one sentence on standard error for whatever went wrong.

docs/cli.md tells the statuses to the user. Must not know any command.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

from lamina.client.errors import ClientError, Unreachable

if TYPE_CHECKING:
    from concurrent.futures import Future

    from lamina.client.cluster import Cluster

T = TypeVar("T")

FINE = 0
SOMETHING_WRONG = 1
BAD_INPUT = 2
UNREACHABLE = 3
OUR_FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

_REMEDIES: dict[type, str] = {
    FileNotFoundError: ": check the name",
    PermissionError: ": run this as the user that the broker runs as",
    NotADirectoryError: ": name a directory",
}


def warn(text: str) -> None:
    click.echo(f"lamina: {text}", err=True)


def describe(error: OSError) -> str:
    """What the operating system refused, and what to do."""
    return f"{error.filename or 'the output'}: {(error.strerror or str(error)).lower()}{_REMEDIES.get(type(error), '')}"


class Attempts:
    """Several things asked of a cluster at once: each is tried, and each error is one sentence."""

    def __init__(self, cluster: "Cluster") -> None:
        self.status = FINE
        self._cluster = cluster

    def answers(self, asked: Iterable[tuple[str, "Future[T]"]]) -> Iterator[tuple[str, T]]:
        """What was answered for each name. A cluster that goes away ends it: the rest would not be answered."""
        for name, future in asked:
            try:
                yield name, self._cluster.answer(future)
            except Unreachable:
                raise
            except ClientError as error:
                self.fail(name, error)

    def fail(self, name: str, error: ClientError) -> None:
        """The name stands before the sentence unless the sentence names it."""
        self.status = SOMETHING_WRONG
        warn(str(error) if f"'{name}'" in str(error) else f"{name}: {error}")
