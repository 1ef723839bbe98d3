"""The compiled walk's own source, run by Python over bytes that notice every read outside of them. Needs numba."""

from types import FunctionType

from lamina.records import kernel


class Guarded:
    """Bytes that know no negative index and forgive none past their end, as machine code would not notice."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < len(self._data):
            raise AssertionError(f"read at {index} of {len(self._data)} bytes")
        return self._data[index]


def interpreted() -> FunctionType:
    """The kernel's source run by Python itself, its compiled callees put back to source as well."""
    scope = dict(vars(kernel))
    sources = {name: value.py_func for name, value in scope.items() if hasattr(value, "py_func")}
    for name, source in sources.items():
        scope[name] = FunctionType(source.__code__, scope)
    assert len(sources) == 5
    walk = scope["walk"]
    assert isinstance(walk, FunctionType)
    return walk


WALK_SOURCE = interpreted()
