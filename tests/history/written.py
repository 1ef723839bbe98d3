"""A history as a file: lines of JSON, compressed, to be looked at by people and checked again.

Owns the format. Must not know what is right.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.history.events import (
    Assigned,
    EndSeen,
    History,
    Partition,
    Read,
    Send,
    SendOutcome,
    TransactionOutcome,
)


def write_history(history: History, path: Path) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        for line in _lines(history):
            file.write(json.dumps(line) + "\n")


def read_history(path: Path) -> History:
    history = History()
    final: dict[Partition, dict[int, bytes]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for text in file:
            _take(history, final, json.loads(text))
    history.final = final
    return history


def _lines(history: History) -> Iterator[dict[str, Any]]:
    yield {"compacted": sorted(history.compacted), "uncommitted_readers": sorted(history.uncommitted_readers)}
    for transaction, outcome in history.transactions.items():
        yield {"kind": "transaction", "id": transaction, "outcome": outcome}
    for event in (*history.sends, *history.moves, *history.ends):
        fields = {name: getattr(event, name) for name in event.__slots__}
        yield {"kind": type(event).__name__, **fields, "value": fields.get("value", b"").decode("latin-1")}
    for partition, records in history.final.items():
        yield {
            "kind": "final",
            "partition": partition,
            "records": [(at, value.decode("latin-1")) for at, value in records.items()],
        }


def _take(history: History, final: dict[Partition, dict[int, bytes]], line: dict[str, Any]) -> None:
    kind = line.pop("kind", None)
    if kind is None:
        history.compacted = set(line["compacted"])
        history.uncommitted_readers = set(line["uncommitted_readers"])
        return
    if kind == "transaction":
        history.transactions[line["id"]] = TransactionOutcome(line["outcome"])
        return
    partition = line["partition"] = (line["partition"][0], line["partition"][1])
    if kind == "final":
        final[partition] = {offset: value.encode("latin-1") for offset, value in line["records"]}
        return
    value = line.pop("value").encode("latin-1")
    if kind == "Send":
        outcome = SendOutcome(line.pop("outcome"))
        history.sends.append(Send(**line, outcome=outcome, value=value))
    elif kind == "Read":
        history.moves.append(Read(**line, value=value))
    elif kind == "Assigned":
        history.moves.append(Assigned(**line))
    else:
        history.ends.append(EndSeen(**line))
