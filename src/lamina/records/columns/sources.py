"""One number for all that is compiled into a kernel, and for the machine's instructions that it uses."""

import zlib
from importlib.resources import files

from lamina.records.columns.memory import CRC_INSTRUCTION

_HERE = "lamina.records.columns"


def stamp_of(*packages: str) -> int:
    """A number for the sources of these packages and of this one.

    Not zero, as a kernel that asks whether it is relies on: so that its cached form belongs to this number.
    """
    stamp = zlib.crc32(CRC_INSTRUCTION.encode())
    for package in (_HERE, *packages):
        for source in sorted(files(package).iterdir(), key=lambda source: source.name):
            if source.name.endswith(".py"):
                stamp = zlib.crc32(source.read_bytes(), stamp)
    return stamp or 1


STAMP = stamp_of()
