"""The changes that one controller has made, numbered, for the brokers that follow it.

Owns their numbers and the last of them as lines. Version 0 is the image with which the controller began; each change is
one more. Whoever has followed too long ago, or another controller, gets the whole image. Must not know who follows.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from lamina.broker.metadata.change_messages import encode_changes
from lamina.image.diff import diff
from lamina.image.image import Image

_KEPT_CHANGES = 2000
_KEPT_BYTES = 16 * 1024 * 1024


class Told(NamedTuple):
    """The lines that lead from a version to ``version``; with ``is_full`` the one line of the whole image."""

    version: int
    is_full: bool
    lines: list[bytes]


class ChangeStream:
    def __init__(self, controller_epoch: int, image: Image) -> None:
        self.controller_epoch = controller_epoch
        self.image = image
        self.version = 0
        self._lines: deque[bytes] = deque()
        """Of the versions up to ``version``, the last ones."""
        self._kept_bytes = 0
        self._full: tuple[int, bytes] | None = None
        self._waiting: dict[asyncio.Future[None], None] = {}
        """In the order in which they came."""
        self._is_ended = False
        self.is_released = False

    @property
    def position(self) -> tuple[int, int]:
        """The controller epoch and the version of its image: later ones are greater."""
        return self.controller_epoch, self.version

    def append(self, new: Image, line: bytes) -> None:
        """The image is another from now on, by the changes in this line: wake all who wait for it."""
        self.image = new
        self.version += 1
        self._lines.append(line)
        self._kept_bytes += len(line)
        while len(self._lines) > _KEPT_CHANGES or (self._kept_bytes > _KEPT_BYTES and len(self._lines) > 1):
            self._kept_bytes -= len(self._lines.popleft())
        self._wake()

    def since(self, controller_epoch: int, version: int) -> Told:
        """What a broker has to be told that has followed this far."""
        first_kept = self.version - len(self._lines)
        if controller_epoch == self.controller_epoch and first_kept <= version <= self.version:
            lines = list(self._lines)
            return Told(self.version, False, lines[version - first_kept :])
        if self._full is None or self._full[0] != self.version:
            nothing = Image(self.image.cluster_id)
            self._full = (self.version, encode_changes(diff(nothing, self.image)))
        return Told(self.version, True, [self._full[1]])

    async def wait_above(self, version: int, deadline: float) -> None:
        """Return when there is a newer version, at the deadline, or when waiters are released."""
        loop = asyncio.get_running_loop()
        while self.version <= version and not (self._is_ended or self.is_released) and loop.time() < deadline:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiting[waiter] = None
            timer = loop.call_at(deadline, _wake_one, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiting.pop(waiter, None)

    def release(self) -> None:
        """Let nobody wait from now on: this broker is about to close its connections."""
        self.is_released = True
        self._wake()

    def end(self) -> None:
        """This controller decides nothing any more."""
        self._is_ended = True
        self._wake()

    @property
    def is_ended(self) -> bool:
        return self._is_ended

    def _wake(self) -> None:
        for waiter in tuple(self._waiting):
            _wake_one(waiter)


def _wake_one(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
