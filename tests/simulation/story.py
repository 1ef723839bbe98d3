"""What happened, in order: one line for each event, with its time and whose it is.

Owns the lines and their digest: two runs of one seed tell the same story, byte for byte. Must not know what it tells.
"""

from collections.abc import Callable
from hashlib import sha256


class Story:
    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.lines: list[str] = []

    def tell(self, who: str, what: str) -> None:
        self.lines.append(f"{self._now_ns() / 1_000_000_000:12.6f}  {who:<10}  {what}")

    @property
    def digest(self) -> str:
        return sha256("\n".join(self.lines).encode()).hexdigest()
