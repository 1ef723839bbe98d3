"""What a dumped file gives: rows with a type, and how each is shown in a table.

Must not know any file format.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lamina.cli.printing.tables import Row
from lamina.cli.printing.text import cell
from lamina.log.files import Disk, read_file

_SMALL_FILE_MAX_BYTES = 256 * 1024 * 1024


class Unreadable(Exception):
    """From here on the file cannot be read; the sentence says where and why. Rows before it stand."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one type. They may end with :class:`Unreadable`."""

    row_type: str
    """What a row is, as JSON names it."""
    columns: tuple[tuple[str, Callable[[Row], str]], ...]
    rows: Iterator[Row]


def column(heading: str, key: str = "") -> tuple[str, Callable[[Row], str]]:
    """A column that shows one value as it is; the key is the heading with underscores unless given."""
    name = key or heading.replace(" ", "_")
    return heading, lambda row: cell(row[name])


def read_small(disk: Disk, path: str) -> bytes:
    """A file that is small by nature; raises Unreadable for one that is not."""
    file = disk.open(path)
    try:
        size_bytes = file.size()
    finally:
        file.close()
    if size_bytes > _SMALL_FILE_MAX_BYTES:
        raise Unreadable(f"its {size_bytes} bytes are too many for a file of this kind")
    return read_file(disk, path)
