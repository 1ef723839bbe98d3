"""``lamina consume --schema-registry`` on a real broker, with a registry over real HTTP."""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.records import Records
from tests.schema_registry.registry import Registry, avro, framed, serving

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
NOON = avro(ORDER, {"id": 7, "at": 1_769_860_800_000})


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as registry:
        registry.add(ORDER)
        registry.add({"type": "object"}, "JSON")
        yield registry


def send(records: Records, topic: str, *sent: tuple[bytes | None, bytes | None]) -> None:
    records.make(topic)
    lines = [
        {part: None if data is None else b64encode(data).decode() for part, data in (("key", key), ("value", value))}
        | {"key_encoding": "base64", "value_encoding": "base64"}
        for key, value in sent
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert records.produce(topic, data, "--format", "json").status == 0


def test_values_are_decoded(records: Records, topic: str, registry: Registry) -> None:
    send(records, topic, (b"plain", framed(1, NOON)), (framed(2, b'"k"'), framed(2, b'{"a": 1.0}')), (b"gone", None))
    outcome = records.consume(topic, "--schema-registry", registry.url)
    assert outcome.out == '{"id":7,"at":"2026-01-31T12:00:00Z"}\n{"a": 1.0}\n\n'
    assert "lamina:" not in outcome.err
    assert (
        records.consume(topic, "--schema-registry", registry.url, "--format", "%o %k").out == '0 plain\n1 "k"\n2 gone\n'
    )


def test_rows_hold_what_was_decoded(records: Records, topic: str, registry: Registry) -> None:
    send(records, topic, (b"plain", framed(1, NOON)), (framed(2, b"[1]"), b"\xffraw"))
    first, second = records.rows(topic, "--schema-registry", registry.url)
    fields = ("key", "key_encoding", "key_schema_id", "value", "value_encoding", "value_schema_id")
    order = {"id": 7, "at": "2026-01-31T12:00:00Z"}
    assert [first[name] for name in fields] == ["plain", "text", None, order, "json", 1]
    assert [second[name] for name in fields] == [[1], "json", 2, "/3Jhdw==", "base64", None]


def test_what_cannot_be_decoded_is_escaped_and_told_once(records: Records, topic: str, registry: Registry) -> None:
    bad = framed(9, b"\x1b"), framed(1, b"\x02"), b"text", framed(9, b"again")
    send(records, topic, *((None, data) for data in bad))
    outcome = records.consume(topic, "--schema-registry", registry.url)
    assert outcome.status == 0
    assert outcome.out.splitlines() == [
        r"\x00\x00\x00\x00\t\x1b".replace(r"\t", "\t"),
        r"\x00\x00\x00\x00\x01\x02",
        "text",
        r"\x00\x00\x00\x00\tagain".replace(r"\t", "\t"),
    ]
    *notes, total, _summary = outcome.err.splitlines()
    assert len(notes) == 3
    assert notes[0] == (
        "lamina: partition 0 at offset 0: the value cannot be decoded: "
        f"the schema registry at {registry.url} has no schema 9"
    )
    assert "offset 1: the value cannot be decoded: schema 1: it does not fit its schema" in notes[1]
    assert total == "lamina: 4 keys and values could not be decoded"


def test_json_that_is_nested_at_the_edge_of_what_can_be_read(records: Records, topic: str, registry: Registry) -> None:
    depths = [*range(850, 1000), 100_000]
    send(records, topic, *((None, framed(2, b"[" * depth + b"]" * depth)) for depth in depths))
    rows = records.rows(topic, "--schema-registry", registry.url)
    encodings = [row["value_encoding"] for row in rows]
    assert encodings == sorted(encodings, reverse=True)  # What is nested less deeply is decoded.
    assert encodings[-1] == "base64"
    assert "its JSON is nested too deeply" in records.consume(topic, "--json", "--schema-registry", registry.url).err


def test_without_fastavro_the_line_for_pip_is_told(
    records: Records, topic: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(records, topic, (None, framed(1, NOON)))
    monkeypatch.setitem(sys.modules, "fastavro", None)
    outcome = records.consume(topic, "--schema-registry", registry.url)
    assert outcome.status == 1
    assert "lamina: Avro needs fastavro, which is not installed: pip install 'lamina[registry]'" in outcome.err


def test_logins_and_what_is_wrong(records: Records, topic: str, registry: Registry, tmp_path: Path) -> None:
    send(records, topic, (None, framed(1, NOON)))
    registry.login = "Basic YW5uOnNlY3JldA=="
    refused = records.consume(topic, "--schema-registry", registry.url)
    assert refused.status == 1
    assert f"lamina: the schema registry at {registry.url} refuses this login (HTTP 401)" in refused.err
    file = tmp_path / "registry.properties"
    file.write_text("basic.auth.user.info=ann:secret\n")
    with_login = ("--schema-registry", registry.url, "--schema-registry-config", str(file))
    assert records.consume(topic, *with_login).out == '{"id":7,"at":"2026-01-31T12:00:00Z"}\n'
    file.write_text("basic.auth=ann:secret\n")
    assert "has no option 'basic.auth'" in records.consume(topic, *with_login).err
    for options, sentence in (
        (("--schema-registry", "localhost:8081"), "'localhost:8081' is not a URL such as http://localhost:8081"),
        (("--schema-registry-config", str(file)), "--schema-registry-config needs --schema-registry"),
        (("--schema-registry", registry.url, "--format", "raw"), "give one of them"),
    ):
        outcome = records.consume(topic, *options)
        assert outcome.status == 2
        assert sentence in outcome.err
