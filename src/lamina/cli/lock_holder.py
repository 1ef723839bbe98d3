"""Whether a broker holds a lock file, asked without taking the lock.

A POSIX record lock is taken for a moment only by taking it; ``F_GETLK`` asks. Must not open the file for
writing.
"""

import fcntl
import os
import sys
from struct import Struct

# struct flock: on Linux the type comes first, on macOS the range does.
_IS_LINUX = sys.platform == "linux"
_FLOCK = Struct("hhqqi4x" if _IS_LINUX else "qqihh")


def is_held(path: str) -> bool:
    """``False`` too when there is no such file or it may not be read: then no holder can be named."""
    return holder(path) is not None


def holder(path: str) -> int | None:
    """The process that holds it, 0 when that is not told (in another container); ``None`` when no process seems to."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    wanted = (
        _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        if _IS_LINUX
        else _FLOCK.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    )
    try:
        answer = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    except OSError:
        return None
    finally:
        os.close(fd)
    if answer[0 if _IS_LINUX else 3] == fcntl.F_UNLCK:
        return None
    return max(0, int(answer[4 if _IS_LINUX else 2]))
