"""Dumping the binary files beside a log: indexes and producer snapshots."""

from collections.abc import Callable, Iterator
from struct import Struct

from lamina.cli.dump.listing import Listing, Unreadable, column, read_small
from lamina.cli.printing.tables import Row
from lamina.cli.printing.text import time_text
from lamina.log.files import Disk
from lamina.log.index import OffsetIndex, TimeIndex
from lamina.log.snapshots import unpack_snapshot
from lamina.log.transaction_index import unpack_aborted
from lamina.log.verify.entries import EntryReader

_ABORTED_ENTRY_BYTES = 34


def offset_index(disk: Disk, path: str, base_offset: int) -> Listing:
    def row(fields: tuple[int, ...]) -> Row:
        return {"type": "offset_index_entry", "offset": base_offset + fields[0], "position": fields[1]}

    columns = (column("offset"), column("position"))
    return Listing("offset_index_entry", columns, _entries(disk, path, OffsetIndex.ENTRY, row))


def time_index(disk: Disk, path: str, base_offset: int) -> Listing:
    def row(fields: tuple[int, ...]) -> Row:
        return {
            "type": "time_index_entry",
            "timestamp": fields[0],
            "time": time_text(fields[0]),
            "offset": base_offset + fields[1],
        }

    columns = (column("timestamp"), column("time"), column("offset"))
    return Listing("time_index_entry", columns, _entries(disk, path, TimeIndex.ENTRY, row))


def _entries(disk: Disk, path: str, entry: Struct, row: Callable[[tuple[int, ...]], Row]) -> Iterator[Row]:
    file = disk.open(path)
    try:
        reader = EntryReader(file, entry)
        for fields in reader:
            yield row(fields)
        if reader.padding_bytes:
            yield {"type": "preallocated", "size_bytes": reader.padding_bytes}
        if reader.ragged_bytes:
            position = file.size() - reader.ragged_bytes
            raise Unreadable(f"at position {position}: the file ends inside an entry of {entry.size} bytes")
    finally:
        file.close()


def aborted_index(disk: Disk, path: str) -> Listing:
    columns = (column("producer id"), column("first offset"), column("last offset"), column("last stable offset"))
    return Listing("aborted_transaction", columns, _aborted_rows(disk, path))


def _aborted_rows(disk: Disk, path: str) -> Iterator[Row]:
    data = read_small(disk, path)
    for position in range(0, len(data), _ABORTED_ENTRY_BYTES):
        try:
            entries = unpack_aborted(data[position : position + _ABORTED_ENTRY_BYTES])
        except ValueError as error:
            raise Unreadable(f"at position {position}: {error}") from None
        yield {"type": "aborted_transaction", **entries[0]._asdict()}


def snapshot(disk: Disk, path: str) -> Listing:
    columns = (
        column("producer id"),
        column("epoch"),
        column("last sequence"),
        column("last offset"),
        column("offset delta"),
        column("time"),
        column("coordinator epoch"),
        column("transaction since"),
    )
    return Listing("producer", columns, _producer_rows(disk, path))


def _producer_rows(disk: Disk, path: str) -> Iterator[Row]:
    try:
        producers = unpack_snapshot(read_small(disk, path))
    except ValueError as error:
        raise Unreadable(f"at position 0: {error}") from None
    for producer in producers:
        yield {
            "type": "producer",
            "producer_id": producer.producer_id,
            "epoch": producer.epoch,
            "last_sequence": producer.last_sequence,
            "last_offset": producer.last_data_offset,
            "offset_delta": producer.batches[-1].offset_delta if producer.batches else 0,
            "timestamp": producer.last_timestamp,
            "time": time_text(producer.last_timestamp),
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_since": producer.current_txn_first_offset,
        }
