"""What everybody does who gives the entries of a store a meaning: make them where they are missing, and read them.

Owns the sentence for an entry that cannot be read. Must not know any path.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lamina.store.interface import Create, Store, StoreConflict, StoreError

P = ParamSpec("P")
T = TypeVar("T")


def create_missing(store: Store, path: str, value: bytes) -> None:
    if store.get(path) is None:
        try:
            store.transact([Create(path, value)])
        except StoreConflict:
            return  # another broker was quicker


def create_path(store: Store, path: str) -> None:
    """An empty entry for every part of a path that is not there."""
    if store.get(path) is None:
        parts = path.split("/")[1:]
        for depth in range(1, len(parts) + 1):
            create_missing(store, "/" + "/".join(parts[:depth]), b"")


def parsed(path: str, parse: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    try:
        return parse(*arguments, **named)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} in the metadata store cannot be read: {error!r}") from None
