"""Several things asked of a cluster at once: each is tried, and each error is one sentence.

Must not know any command.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from lamina.cli.connecting import warn
from lamina.cli.status import FINE, SOMETHING_WRONG
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Unreachable

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class Attempts:
    """Remembers whether any failed."""

    def __init__(self, cluster: Cluster) -> None:
        self.status = FINE
        self._cluster = cluster

    def answers(self, asked: Iterable[tuple[str, "Future[T]"]]) -> Iterator[tuple[str, T]]:
        """What was answered for each name. A cluster that goes away ends it: nobody would answer the rest."""
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
