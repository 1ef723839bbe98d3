"""Tasks and drivers of a query that write to a real cluster, and what readers of committed records see of it."""

from collections import Counter
from typing import Any

import pyarrow as pa

import lamina.arrow
from lamina.arrow.properties import parse_properties
from lamina.producing.decisions import BatchName, Slot
from lamina.producing.properties import parse_producer_properties
from lamina.producing.sink_settings import SinkSettings
from lamina.producing.task_writing import Attempt, write_once

NOW_MS = 1_700_000_000_000


def settings(servers: str, topic: str | None, **properties: str) -> SinkSettings:
    given = {"bootstrap.servers": servers, **{name.replace("_", "."): value for name, value in properties.items()}}
    producer = parse_producer_properties(given, is_transactional=True)
    return SinkSettings(parse_properties(given), producer, topic, decision_topic="decisions")


def rows(values: list[str], **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string()), **columns})


def now_ms() -> int:
    return NOW_MS


def batch(sink: SinkSettings, number: int) -> BatchName:
    return BatchName(f"q-{sink.topic}", number)


def write(sink: SinkSettings, number: int, values: list[list[str]]) -> list[Attempt]:
    """One task for each list."""
    name = batch(sink, number)
    return [write_once(sink, name, Slot(task, 0), [rows(one)], now_ms) for task, one in enumerate(values)]


def seen(servers: str, topic: str) -> list[str]:
    """By readers of committed records."""
    reader = lamina.arrow.read(
        topic, ["value"], bootstrap_servers=servers, properties={"isolation.level": "read_committed"}
    )
    return sorted(value.as_py().decode() for value in reader.read_all().column("value"))


def until_seen(servers: str, topic: str, wanted: list[str]) -> None:
    """Markers are written after the end of a transaction is confirmed."""
    for _ in range(1_000):
        if seen(servers, topic) == wanted:
            return
    found, expected = Counter(seen(servers, topic)), Counter(wanted)
    assert found == expected, f"missing {expected - found}, too many {found - expected}"
