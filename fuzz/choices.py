"""Decisions taken from the front of a fuzzer's bytes, so that the rest of them is the input proper.

Past the end everything is zero: any bytes at all are a run. Must not know any target.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, size_bytes: int = 1, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size_bytes).ljust(size_bytes, b"\0"), "big", signed=signed)

    def flag(self) -> bool:
        return self.number() % 2 == 1

    def one_of(self, values: Sequence[T]) -> T:
        """One of up to 65536 values."""
        return values[self.number(1 if len(values) <= 256 else 2) % len(values)]

    def take(self, size_bytes: int) -> bytes:
        taken = self._data[self._at : self._at + size_bytes]
        self._at += len(taken)
        return taken

    def rest(self) -> bytes:
        return self.take(len(self._data))

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)
