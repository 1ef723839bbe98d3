"""Dumping Kafka's text files: checkpoints, identities, the clean-shutdown mark."""

import json
from collections.abc import Callable, Iterator

from lamina.cli.dump.listing import Listing, Unreadable, column, read_small
from lamina.cli.printing.tables import Row
from lamina.log.checkpoints import parse_lines
from lamina.log.epochs import parse_epochs
from lamina.log.files import Disk
from lamina.log.identity import format_id, parse_partition_metadata
from lamina.settings.properties import load


def leader_epochs(disk: Disk, path: str) -> Listing:
    def rows(data: bytes) -> list[Row]:
        return [{"type": "leader_epoch", **entry._asdict()} for entry in parse_epochs(data)]

    return Listing("leader_epoch", (column("epoch"), column("start offset")), _rows(disk, path, rows))


def offset_checkpoint(disk: Disk, path: str) -> Listing:
    def rows(data: bytes) -> list[Row]:
        return [
            {"type": "checkpoint_offset", "topic": topic, "partition": int(partition), "offset": int(offset)}
            for topic, partition, offset in parse_lines(data, fields=3)
        ]

    columns = (column("topic"), column("partition"), column("offset"))
    return Listing("checkpoint_offset", columns, _rows(disk, path, rows))


def partition_metadata(disk: Disk, path: str) -> Listing:
    def rows(data: bytes) -> list[Row]:
        return [{"type": "partition_metadata", "topic_id": format_id(parse_partition_metadata(data))}]

    return Listing("partition_metadata", (column("topic id"),), _rows(disk, path, rows))


def meta_properties(disk: Disk, path: str) -> Listing:
    def rows(data: bytes) -> list[Row]:
        return [{"type": "meta_property", "name": name, "value": value} for name, value in load(data).items()]

    return Listing("meta_property", (column("name"), column("value")), _rows(disk, path, rows))


def clean_shutdown(disk: Disk, path: str) -> Listing:
    def rows(data: bytes) -> list[Row]:
        mark = json.loads(data) if data else {}
        if not isinstance(mark, dict):
            raise ValueError("it is not a JSON object")
        return [{"type": "clean_shutdown", "version": mark.get("version"), "broker_epoch": mark.get("brokerEpoch")}]

    return Listing("clean_shutdown", (column("version"), column("broker epoch")), _rows(disk, path, rows))


def _rows(disk: Disk, path: str, parse: Callable[[bytes], list[Row]]) -> Iterator[Row]:
    """All or nothing: a text file is not worth half of its lines."""
    try:
        yield from parse(read_small(disk, path))
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
