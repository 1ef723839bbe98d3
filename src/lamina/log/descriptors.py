"""Running out of descriptors: what it means for a log, and a reserve for it.

It is temporary: it ends when a file or a connection is closed. So the operation fails and nothing is taken offline.
The reserve is held open for nothing and given up when the system has no more, so that what a log has begun it can
finish; it is filled again as soon as that is possible. A process has one limit, hence one reserve. Must not know files.
"""

import errno
import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def is_temporary(error: OSError) -> bool:
    """Whether the same operation may succeed later without any change to the disk."""
    return error.errno in _OUT_OF_DESCRIPTORS


class DescriptorReserve:
    def __init__(self) -> None:
        self._wanted = 0
        self._held: list[int] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, count: int) -> None:
        """Keep so many from now on; 0 gives all of them back."""
        with self._lock:
            self._wanted = count
            while len(self._held) > count:
                os.close(self._held.pop())
        self._fill()

    def spend(self, operation: Callable[[], T]) -> T:
        """Do what needs a descriptor, with one of the reserve if there is no other."""
        if len(self._held) < self._wanted:
            self._fill()
        while True:
            try:
                return operation()
            except OSError as error:
                if not is_temporary(error) or not self._give_up_one():
                    raise

    def _give_up_one(self) -> bool:
        with self._lock:
            if self._held:
                os.close(self._held.pop())
                return True
            return False

    def _fill(self) -> None:
        with self._lock:
            while len(self._held) < self._wanted:
                try:
                    self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
                except OSError:
                    return


RESERVE = DescriptorReserve()
"""Of this process: empty unless somebody, as a broker does, has it hold some."""
