"""Reading a file that is small by nature, and refusing one that is not."""

from lamina.cli.listing import Unreadable
from lamina.log.files import Disk, read_file

_MAX_BYTES = 256 * 1024 * 1024


def read_small(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        size_bytes = file.size()
    finally:
        file.close()
    if size_bytes > _MAX_BYTES:
        raise Unreadable(f"its {size_bytes} bytes are too many for a file of this kind")
    return read_file(disk, path)
