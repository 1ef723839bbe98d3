"""Where numba keeps compiled kernels, found without importing numba.

Owns the order in which numba tries directories, and the line that is said before a first compilation. Must not compile.
"""

import fnmatch
import hashlib
import os
import sys

COMPILING = "Compiling the cleaning kernels, once…"
WAITS_FOR_KERNELS = "the first pass on this machine compiles the cleaning kernels, once"


def cache_directory(sources: str) -> str | None:
    """The first directory for kernels of this source directory that can be written to; ``None`` without any."""
    return next((place for place in _places(sources) if _can_write(place)), None)


def is_compiled(sources: str, pattern: str) -> bool:
    """Whether the cache has a kernel whose index is named so. It may be of older sources: numba compares."""
    directory = cache_directory(sources)
    if directory is None or not os.path.isdir(directory):
        return False
    return bool(fnmatch.filter(os.listdir(directory), pattern))


def tell_of_compilation(sources: str) -> None:
    """One line on standard error, from where a broker takes it into its log."""
    if not is_compiled(sources, "*.nbi"):
        print(COMPILING, file=sys.stderr, flush=True)


def _places(sources: str) -> list[str]:
    """Where numba keeps what it compiled from this directory, in the order that it tries."""
    name = f"{os.path.basename(sources)}_{hashlib.sha1(sources.encode()).hexdigest()}"
    places = [os.path.join(sources, "__pycache__")]
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        places.insert(0, os.path.join(chosen, name))
    user = "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    places.append(os.path.join(os.path.expanduser(user), "numba", name))
    return places


def _can_write(directory: str) -> bool:
    """Whether files can be made there, in a directory that may have to be made first."""
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    return os.access(directory, os.W_OK | os.X_OK)
