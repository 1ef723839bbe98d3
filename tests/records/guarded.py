"""Compiled code's own source, run by Python over bytes that notice every read outside of them. Needs numba."""

from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from lamina.records import kernel
from lamina.records.columns import numbers

_FIRST_ADDRESS = 1 << 40
"""Of the only bytes that there are: a position that is taken for an address hits nothing."""


class Guarded:
    """Bytes that forgive no read outside of them, as machine code would not notice."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


class _Memory:
    """What is read by address."""

    def __init__(self) -> None:
        self._data = b""

    def address_of(self, guarded: Guarded) -> int:
        self._data = guarded.data
        return _FIRST_ADDRESS

    def load8(self, address: int) -> "np.uint8":
        index = address - _FIRST_ADDRESS
        if not 0 <= index < len(self._data):
            raise AssertionError(f"read at {index} of {len(self._data)} bytes")
        return np.uint8(self._data[index])


def interpreted(dispatcher: Any, *modules: Any) -> FunctionType:
    """A kernel run by Python itself, as is all compiled code of these modules that it calls."""
    memory = _Memory()
    scope: dict[str, Any] = {}
    for module in modules:
        scope |= vars(module)
    sources = {name: value.py_func for name, value in scope.items() if hasattr(value, "py_func")}
    scope |= {name: _with_globals(source, scope) for name, source in sources.items()}
    scope |= {"address_of": memory.address_of, "load8": memory.load8}
    for module in modules:
        scope[module.__name__.rpartition(".")[2]] = SimpleNamespace(**scope)
    return _with_globals(dispatcher.py_func, scope)


def _with_globals(source: FunctionType, scope: dict[str, Any]) -> FunctionType:
    cells: tuple[CellType, ...] | None = source.__closure__
    return FunctionType(source.__code__, scope, source.__name__, source.__defaults__, cells)


WALK_SOURCE = interpreted(kernel.walk, numbers, kernel)
