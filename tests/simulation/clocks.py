"""The clocks of a node: they go with the loop's time; the wall clock can be wrong, and be set."""

from lamina.clocks import Clocks
from tests.simulation.loop import VirtualLoop

_BEGIN_NS = 1_800_000_000_000_000_000
_MS = 1_000_000


class NodeClocks:
    def __init__(self, loop: VirtualLoop, offset_ms: int = 0) -> None:
        self._loop = loop
        self.offset_ms = offset_ms
        """How far the wall clock is ahead of the others'."""
        self.clocks = Clocks(self._wall_ns, lambda: loop.now_ns, lambda: loop.now_ns)

    def jump(self, ms: int) -> None:
        """Set the wall clock; the monotonic one does not know."""
        self.offset_ms += ms

    def _wall_ns(self) -> int:
        return _BEGIN_NS + self._loop.now_ns + self.offset_ms * _MS
