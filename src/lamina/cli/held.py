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
    """``False`` too when there is no such file or it may not be read: then nobody can be told to hold it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    wanted = (
        _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        if _IS_LINUX
        else _FLOCK.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    )
    try:
        answer = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    except OSError:
        return False
    finally:
        os.close(fd)
    return bool(answer[0 if _IS_LINUX else 3] != fcntl.F_UNLCK)
