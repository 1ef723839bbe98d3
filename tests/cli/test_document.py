"""docs/cli.md names every field that ``--json`` prints, every command and every exit status."""

import json
from collections.abc import Iterator
from pathlib import Path

from lamina.cli import status
from lamina.cli.app import COMMANDS
from tests.cli.records import Records
from tests.cli.running import Lamina

DOCUMENT = (Path(__file__).parents[2] / "docs/cli.md").read_text()


def test_every_field_of_json_is_documented(lamina: Lamina, directory: Path) -> None:
    (directory / "orders-0/00000000000000000014.index").unlink()
    (directory / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    index = directory / "orders-0/00000000000000000028.index"
    index.write_bytes(index.read_bytes() + bytes(8))
    files = [path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ".lock"]
    rows = lamina("dump", "--records", "--json", *files).objects
    rows += lamina("verify", "--json", "--dir", directory).objects
    assert len({row["type"] for row in rows}) == 14
    for row in rows:
        for name in (*row, row["type"]):
            assert f"`{name}`" in DOCUMENT


def names_in(value: object) -> Iterator[str]:
    """The names of all fields, however deep."""
    if isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each)


def test_every_field_of_records_and_summaries_is_documented(records: Records, topic: str) -> None:
    records.make(topic)
    rows = records.produce(topic, b"k:v\n", "--key-separator", ":", "--header", "a=b", "--json").objects
    consumed = records.consume(topic, "--json")
    rows += [*consumed.objects, json.loads(consumed.err)]
    for what in ("produce", "consume"):
        bench = ("bench", what, "--topic", topic, "--records", "1", "--json")
        rows += records.lamina(*bench, "--bootstrap-server", records.address).objects
    assert [row["type"] for row in rows] == ["summary", "record", "summary", "bench_produce", "bench_consume"]
    for row in rows:
        for name in (*names_in(row), row["type"]):
            assert f"`{name}`" in DOCUMENT, name


def test_every_command_and_exit_status_is_documented() -> None:
    assert all(f"## `lamina {name}" in DOCUMENT for name in COMMANDS)
    statuses = [value for name, value in vars(status).items() if name.isupper()]
    assert all(f"\n| {value} | " in DOCUMENT for value in statuses)
