"""Python's cycle collector, kept from holding up the loop.

A full collection walks every object that may be part of a cycle, and no thread runs meanwhile: with thousands of
partitions, or a request of ten thousand entries, it takes longer than any turn may. So full collections come when some
fifteen thousand objects have come, and what survives one that took long is frozen: it is not walked again, and still
goes when nobody refers to it. It is no garbage at that moment; only a cycle that is frozen and dies later stays for
good. What is there at first, the code above all, is frozen as it is. Must not know what is in the heap.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lamina.clocks import Clocks

_LONG_NS = 2_000_000
_COLLECTIONS_OF_MIDDLE = 1
"""Every second walk of the middle generation, of some eight thousand objects, is one of all."""
_OLDEST = 2


@contextmanager
def loading() -> Iterator[None]:
    """No collection while modules are loaded: they stay, and walking them takes a twelfth of that time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def short_collections(clocks: Clocks) -> Iterator[None]:
    """No full collection takes much longer than two milliseconds, however much is there."""
    began_ns = 0

    def collecting(phase: str, facts: Mapping[str, int]) -> None:
        nonlocal began_ns
        if facts["generation"] != _OLDEST:
            return
        if phase == "start":
            began_ns = clocks.monotonic_ns()
        elif clocks.monotonic_ns() - began_ns >= _LONG_NS:
            gc.freeze()

    youngest, middle, oldest = gc.get_threshold()
    gc.set_threshold(youngest, middle, _COLLECTIONS_OF_MIDDLE)
    gc.callbacks.append(collecting)
    gc.freeze()
    try:
        yield
    finally:
        gc.callbacks.remove(collecting)
        gc.set_threshold(youngest, middle, oldest)
