"""Dumping a ``.log``: its batches, or their records."""

from collections.abc import Iterator

from lamina.cli.dump.listing import Listing, Unreadable, column
from lamina.cli.printing.tables import Row, Value
from lamina.cli.printing.text import cell, readable, time_text
from lamina.errors import KafkaError
from lamina.log.files import Disk, File
from lamina.log.scan import BadBatch
from lamina.log.verify.walk import Walked, records_of, walk_batches
from lamina.records.batch import BatchHeader, Codec
from lamina.records.marker import ControlType, read_marker
from lamina.records.record import Record


def batches(disk: Disk, path: str) -> Listing:
    columns = (
        column("position"),
        column("base offset"),
        column("last offset"),
        column("count"),
        column("size", "size_bytes"),
        column("codec"),
        ("time", lambda row: f"{cell(row['time'])} {row['timestamp_type']}"),
        ("producer", lambda row: _pair(row["producer_id"], row["producer_epoch"])),
        ("sequences", lambda row: _pair(row["base_sequence"], row["last_sequence"], "-")),
        column("leader epoch"),
        ("flags", _flags),
        column("magic"),
        column("crc"),
        column("valid"),
    )
    return Listing("batch", columns, _batch_rows(disk, path, with_records=False))


def records(disk: Disk, path: str) -> Listing:
    """Every record; in JSON each batch comes before its records."""
    columns = (
        column("offset"),
        column("time"),
        column("sequence"),
        ("key", lambda row: _shown(row, "key")),
        ("value", lambda row: _shown(row, "value")),
        ("headers", _shown_headers),
        ("control", lambda row: _pair(row["control_type"], row["coordinator_epoch"])),
    )
    return Listing("record", columns, _batch_rows(disk, path, with_records=True))


def _batch_rows(disk: Disk, path: str, *, with_records: bool) -> Iterator[Row]:
    file = disk.open(path)
    bad_count, first_bad = 0, ""
    try:
        for batch in walk_batches(file, file.size()):
            fault, rows = batch.fault, []
            if with_records and fault is None:
                try:
                    rows = _record_rows(file, batch)
                except KafkaError as error:
                    fault = str(error)
            if fault is not None:
                bad_count += 1
                first_bad = first_bad or f"at position {batch.position}: {fault}"
            yield _batch_row(batch, fault)
            yield from rows
    except BadBatch as bad:
        raise Unreadable(first_bad or str(bad)) from None
    finally:
        file.close()
    if bad_count:
        raise Unreadable(f"{first_bad}; {bad_count} bad batches in all" if bad_count > 1 else first_bad)


def _batch_row(batch: Walked, fault: str | None) -> Row:
    header = batch.header
    return {
        "type": "batch",
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "leader_epoch": header.leader_epoch,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "max_timestamp": header.max_timestamp,
        "time": time_text(header.max_timestamp),
        "size_bytes": header.size_bytes,
        "magic": header.magic,
        "codec": _codec_name(header),
        "crc": f"{header.crc:08x}",
        "valid": fault is None,
        "fault": fault,
    }


def _record_rows(file: File, batch: Walked) -> list[Row]:
    marker = read_marker(batch.data, 0, batch.header) if batch.header.is_control else None
    coordinator_epoch = None if marker is None else marker.coordinator_epoch
    return [_record_row(batch.header, record, coordinator_epoch) for record in records_of(file, batch)]


def _record_row(header: BatchHeader, record: Record, coordinator_epoch: int | None) -> Row:
    key, key_encoding = readable(record.key)
    value, value_encoding = readable(record.value)
    has_sequence = header.base_sequence >= 0
    shown: list[Value] = []
    for name, content in record.headers:
        header_key, header_key_encoding = readable(name)
        header_value, header_value_encoding = readable(content)
        shown.append(
            {
                "key": header_key,
                "key_encoding": header_key_encoding,
                "value": header_value,
                "value_encoding": header_value_encoding,
            }
        )
    return {
        "type": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "time": time_text(record.timestamp),
        "sequence": (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF if has_sequence else None,
        "key": key,
        "key_encoding": key_encoding,
        "value": value,
        "value_encoding": value_encoding,
        "headers": shown,
        "control_type": _control_type(record) if header.is_control else None,
        "coordinator_epoch": coordinator_epoch,
    }


def _control_type(record: Record) -> str:
    """Each record's own: KRaft puts several into one batch."""
    return ControlType(int.from_bytes((record.key or b"")[2:4], "big", signed=True)).name.lower()


def _codec_name(header: BatchHeader) -> str:
    try:
        return Codec(header.codec_id).name.lower()
    except ValueError:
        return f"unknown ({header.codec_id})"


def _pair(first: Value, second: Value, between: str = "/") -> str:
    if first is None or first == -1:
        return ""
    return cell(first) if second is None else f"{first}{between}{second}"


def _flags(row: Row) -> str:
    names = [name for name in ("transactional", "control") if row[name]]
    if row["delete_horizon_ms"] is not None:
        names.append(f"horizon {row['delete_horizon_ms']}")
    return ", ".join(names)


def _shown(row: Row, name: str) -> str:
    """Text as it is, on one line; other bytes as base64, marked; null as such."""
    value, encoding = row[name], row[f"{name}_encoding"]
    if not isinstance(value, str):
        return "null"
    return f"base64:{value}" if encoding == "base64" else value.translate(_ON_ONE_LINE)


def _shown_headers(row: Row) -> str:
    headers = row["headers"]
    assert isinstance(headers, list)
    return ", ".join(f"{_shown(each, 'key')}={_shown(each, 'value')}" for each in headers if isinstance(each, dict))


_ON_ONE_LINE = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
