"""Compiled code's own source, run by Python over memory in which every access outside of what was given is noticed.

Machine code reads and writes by address and would not notice. Needs numba.
"""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from lamina.records import kernel
from lamina.records.batch import Buffer
from lamina.records.columns import memory, numbers

Array = npt.NDArray[Any]


class GuardedMemory:
    """The bytes of some arrays, by their addresses; it keeps them."""

    def __init__(self) -> None:
        self._regions: list[tuple[int, Array]] = []

    def lend(self, array: Array) -> Array:
        """Let these bytes be accessed from now on."""
        self._regions.append((array.ctypes.data, array.view(np.uint8)))
        return array

    def _bytes(self, address: int, size: int) -> Array:
        for start, data in self._regions:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        nearest = min((abs(address - start), address - start) for start, _ in self._regions)[1]
        raise AssertionError(f"{size} bytes at {nearest} are outside of what was given")

    def _load(self, address: Any, word: type[np.unsignedinteger[Any]]) -> Any:
        size = np.dtype(word).itemsize
        return word(int.from_bytes(self._bytes(int(address), size).tobytes(), sys.byteorder))

    def _store(self, address: Any, value: Any, size: int) -> None:
        data = int(value).to_bytes(size, sys.byteorder)
        self._bytes(int(address), size)[:] = np.frombuffer(data, np.uint8)

    def _copy(self, target: Any, source: Any, size: Any) -> None:
        self._bytes(int(target), int(size))[:] = self._bytes(int(source), int(size))

    def instructions(self) -> dict[str, Callable[..., Any]]:
        """Instead of those of ``columns.memory``."""
        return {
            "load8": lambda at: self._load(at, np.uint8),
            "load32": lambda at: self._load(at, np.uint32),
            "load64": lambda at: self._load(at, np.uint64),
            "store8": lambda at, value: self._store(at, value, 1),
            "store32": lambda at, value: self._store(at, value, 4),
            "store64": lambda at, value: self._store(at, value, 8),
            "_store64": lambda at, value: self._store(at, value, 8),
            "copy_memory": self._copy,
        }


def interpreted(guarded: GuardedMemory, dispatcher: Any, *modules: Any) -> FunctionType:
    """A kernel run by Python itself, as is all compiled code that it calls; ``modules`` have the names that it uses."""
    scope: dict[str, Any] = {}
    for module in (memory, numbers, *modules):
        scope |= vars(module)
    sources = {name: value.py_func for name, value in scope.items() if hasattr(value, "py_func")}
    scope |= {name: _with_globals(source, scope) for name, source in sources.items()}
    scope |= guarded.instructions()
    return _with_globals(dispatcher.py_func, scope)


def _with_globals(source: FunctionType, scope: dict[str, Any]) -> FunctionType:
    return FunctionType(source.__code__, scope, source.__name__, source.__defaults__, source.__closure__)


def walk_guarded(
    records: Buffer, record_count: int, base_timestamp: int, needs_keys: bool, earliest_ms: int, latest_ms: int
) -> None:
    """The compiled walk over a batch's records."""
    guarded = GuardedMemory()
    data = guarded.lend(np.frombuffer(records, np.uint8))
    walk = interpreted(guarded, kernel.walk, kernel)
    with np.errstate(over="ignore"):
        walk(data, record_count, base_timestamp, needs_keys, earliest_ms, latest_ms, kernel._NO_FAULTS)
