"""Several files in one input, and a directory to put them into.

An input is a row of sections: one byte for the name, two for the size, then the content. A name beyond those that a
target knows starts again from the first. Must not know what is in a file.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from fuzz.choices import Choices

_IN_MEMORY = Path("/dev/shm")
_SIZE_BYTES = 2


def pack_files(names: Sequence[str], files: Mapping[str, bytes]) -> bytes:
    """The sections that :func:`unpack_files` takes for these files."""
    return b"".join(
        bytes([names.index(name)]) + len(content).to_bytes(_SIZE_BYTES, "big") + content
        for name, content in files.items()
    )


def unpack_files(names: Sequence[str], choices: Choices) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    while not choices.is_over:
        name = choices.one_of(names)
        found[name] = choices.take(choices.number(_SIZE_BYTES))
    return found


@contextmanager
def scratch(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A directory of its own, in memory where the machine offers that, with these files below it."""
    root = Path(mkdtemp(prefix="lamina-fuzz-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))
    try:
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield root
    finally:
        shutil.rmtree(root)
