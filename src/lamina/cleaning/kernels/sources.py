"""One number for all that is compiled into the kernels of a pass, and for the machine's instructions that they use."""

import zlib
from importlib.resources import files

from lamina.cleaning.kernels.memory import CRC_INSTRUCTION

_PACKAGES = ("lamina.cleaning.kernels", "lamina.compaction")


def _stamp() -> int:
    stamp = zlib.crc32(CRC_INSTRUCTION.encode())
    for package in _PACKAGES:
        for source in sorted(files(package).iterdir(), key=lambda source: source.name):
            if source.name.endswith(".py"):
                stamp = zlib.crc32(source.read_bytes(), stamp)
    return stamp


STAMP = _stamp()
"""Not zero, as a kernel that asks whether it is relies on: so that its cached form belongs to this number."""
