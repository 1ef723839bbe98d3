"""``lamina dump``: which file is of which kind, and printing what is in it."""

import os
from collections.abc import Callable, Iterator
from stat import S_ISDIR, S_ISREG

import click

from lamina.cli.dump import index_files, log_file, text_files
from lamina.cli.dump.listing import Listing, Unreadable
from lamina.cli.outcome import BAD_INPUT, FINE, describe, warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import cell
from lamina.log import checkpoints
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN
from lamina.log.epochs import FILE_NAME as LEADER_EPOCHS
from lamina.log.files import Disk
from lamina.log.identity import META_PROPERTIES, PARTITION_METADATA
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.leftovers import CLEANED, DELETED, SWAP
from lamina.log.segment import ABORTED_INDEX, LOG
from lamina.log.snapshots import SNAPSHOT

_BY_NAME: dict[str, Callable[[Disk, str], Listing]] = {
    LEADER_EPOCHS: text_files.leader_epochs,
    checkpoints.RECOVERY_POINT: text_files.offset_checkpoint,
    checkpoints.HIGH_WATERMARK: text_files.offset_checkpoint,
    checkpoints.LOG_START: text_files.offset_checkpoint,
    checkpoints.CLEANER: text_files.offset_checkpoint,
    PARTITION_METADATA: text_files.partition_metadata,
    META_PROPERTIES: text_files.meta_properties,
    CLEAN_SHUTDOWN: text_files.clean_shutdown,
}
_BY_EXTENSION: dict[str, Callable[[Disk, str], Listing]] = {
    ABORTED_INDEX: index_files.aborted_index,
    SNAPSHOT: index_files.snapshot,
}
_BY_EXTENSION_AND_BASE: dict[str, Callable[[Disk, str, int], Listing]] = {
    INDEX: index_files.offset_index,
    TIME_INDEX: index_files.time_index,
}


@click.command(
    "dump",
    epilog="""\b
Exit status: 0 fine, 2 a file cannot be read, or only in part.

\b
Examples:
  lamina dump orders-0/00000000000000000000.log
  lamina dump --records --json orders-0/*.log | jq .value
  lamina dump orders-0/00000000000000000000.timeindex orders-0/leader-epoch-checkpoint""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--records", "with_records", is_flag=True, help="Show the records of a .log, not only its batches.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
def command(files: tuple[str, ...], with_records: bool, as_json: bool) -> int:
    """Show what is in the files of a log directory.

    Knows .log, .index, .timeindex, .txnindex and .snapshot, each also with .deleted, .cleaned or .swap behind
    it, leader-epoch-checkpoint, the offset checkpoints, partition.metadata, meta.properties and
    .kafka_cleanshutdown. What can be read of a damaged file is shown, then one sentence says where it ends and
    why.
    """
    disk, status = Disk(), FINE
    for path in files:
        if len(files) > 1 and not as_json:
            click.echo(f"{path}:")
        try:
            listing = _listing(disk, path, with_records)
            failure = _print(path, listing, as_json)
        except Unreadable as error:
            failure = f"{path}: {error}"
        except BrokenPipeError:
            raise
        except OSError as error:
            failure = describe(error)
        if failure is not None:
            warn(failure)
            status = BAD_INPUT
    return status


def _listing(disk: Disk, path: str, with_records: bool) -> Listing:
    mode = os.stat(path).st_mode
    if S_ISDIR(mode):
        raise Unreadable(f"it is a directory: `lamina verify --dir {path}` checks all of it")
    if not S_ISREG(mode):
        raise Unreadable("it is not a regular file: copy what it holds into one")
    name = os.path.basename(path)
    if name in _BY_NAME:
        return _BY_NAME[name](disk, path)
    for suffix in (DELETED, CLEANED, SWAP):
        name = name.removesuffix(suffix)
    stem, dot, extension = name.rpartition(".")
    kind = dot + extension
    if kind == LOG:
        return log_file.records(disk, path) if with_records else log_file.batches(disk, path)
    if kind in _BY_EXTENSION:
        return _BY_EXTENSION[kind](disk, path)
    if kind in _BY_EXTENSION_AND_BASE:
        if len(stem) != 20 or not stem.isdecimal():
            raise Unreadable("its name does not begin with the 20 digits of a base offset: rename it")
        return _BY_EXTENSION_AND_BASE[kind](disk, path, int(stem))
    raise Unreadable("its name is not that of a file of a log directory; see `lamina dump --help`")


def _print(path: str, listing: Listing, as_json: bool) -> str | None:
    """Print all rows; the sentence for what could not be read."""
    rows = _Rows(listing.rows)
    if as_json:
        for row in rows:
            print_json({"file": path, **row})
    else:
        headings = [heading for heading, _ in listing.columns]
        count = print_table(headings, _cells(listing, rows))
        if rows.preallocated_bytes:
            click.echo(f"{rows.preallocated_bytes} preallocated bytes follow: its segment is active, or was at a crash")
        elif not count and rows.failure is None:
            click.echo("(empty)")
    return None if rows.failure is None else f"{path}: {rows.failure}"


def _cells(listing: Listing, rows: "_Rows") -> Iterator[list[str]]:
    for row in rows:
        if row["type"] == listing.row_type:
            yield [show(row) for _, show in listing.columns]
        elif row["type"] == "preallocated":
            rows.preallocated_bytes = int(cell(row["size_bytes"]))


class _Rows:
    """Rows up to where the file can be read; what stopped them is kept, so that they are shown first."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self.failure: Unreadable | None = None
        self.preallocated_bytes = 0

    def __iter__(self) -> Iterator[Row]:
        try:
            yield from self._rows
        except Unreadable as error:
            self.failure = error
