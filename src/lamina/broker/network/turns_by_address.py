"""Who comes next of many who wait: one of each address in turn, so that no address keeps the others waiting.

Must not know what they wait for.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class TurnsByAddress(Generic[T]):
    def __init__(self) -> None:
        self._by_address: OrderedDict[str, dict[T, None]] = OrderedDict()
        """The address whose turn it is first; of each, who came first. No address without any."""

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def add(self, address: str, one: T) -> None:
        self._by_address.setdefault(address, {})[one] = None

    def take(self) -> T:
        address, those = self._by_address.popitem(last=False)
        one = next(iter(those))
        del those[one]
        if those:
            self._by_address[address] = those
        return one

    def discard(self, address: str, one: T) -> None:
        those = self._by_address.get(address)
        if those is not None:
            those.pop(one, None)
            if not those:
                del self._by_address[address]
