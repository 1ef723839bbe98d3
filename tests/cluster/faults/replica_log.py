"""What one replica's files hold, read as a reader of committed records would read them."""

from collections import defaultdict
from pathlib import Path

from lamina.records.batch import walk
from lamina.records.marker import ControlType, read_marker
from lamina.records.record import Record, iterate_records

_LIMIT_BYTES = 1 << 24


def committed_records(replica: Path) -> list[Record]:
    """By offset. Raises AssertionError where a transaction has no end."""
    committed: list[Record] = []
    pending: dict[int, list[Record]] = defaultdict(list)
    for path in sorted(replica.glob("*.log")):
        data = path.read_bytes()
        for position, header in walk(data):
            if header.is_control:
                marker = read_marker(data, position, header)
                assert marker is not None
                records = pending.pop(header.producer_id, [])
                if marker.control_type is ControlType.COMMIT:
                    committed += records
            else:
                records = list(iterate_records(data, position, header, _LIMIT_BYTES))
                (pending[header.producer_id] if header.is_transactional else committed).extend(records)
    open_ = {producer_id: len(records) for producer_id, records in pending.items() if records}
    assert open_ == {}, f"{replica}: transactions of producers without an end: {open_}"
    return sorted(committed, key=lambda record: record.offset)


def latest_of_each_key(records: list[Record]) -> dict[bytes, bytes]:
    """Of each key that has one."""
    latest = {record.key: record.value for record in records}
    return {key: value.rstrip() for key, value in latest.items() if key is not None and value is not None}
