"""docs/cli.md names every field that ``--json`` prints, every command and every exit status."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lamina.cli import outcome
from lamina.cli.app import COMMANDS, app
from tests.broker.process import BrokerProcess
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
    rows += lamina("doctor", "--json", "--data-dir", directory, "--listen", "127.0.0.1:0").objects
    assert len({row["type"] for row in rows}) == 14
    for row in rows:
        for name in (*row, row["type"]):
            assert f"`{name}`" in DOCUMENT


def test_every_field_that_is_told_of_a_cluster_is_documented(lamina: Lamina, broker: BrokerProcess, topic: str) -> None:
    where = ("--bootstrap-server", broker.address)
    lamina("topics", "create", topic, *where)
    asked = (
        ("brokers",),
        ("topics", "list"),
        ("topics", "describe", topic),
        ("topics", "offsets", topic),
        ("topics", "elect", topic),
        ("topics", "offsets", topic, "--at", "earliest"),
        ("configs", "get", "--topic", topic, "--all"),
        ("configs", "get", "--broker", "1", "--all"),
        ("features", "describe"),
        ("features", "upgrade", "transaction.version=2", "--dry-run"),
        ("quotas", "set", "--user", "somebody", "--client-id", "app", "consumer_byte_rate=1GiB"),
        ("quotas", "list"),
        ("quotas", "remove", "--user", "somebody", "--client-id", "app"),
    )
    rows = [row for args in asked for row in lamina(*args, "--json", *where).objects]
    cluster = {
        "broker",
        "topic",
        "partition_ends",
        "partition_offset",
        "config",
        "feature",
        "feature_update",
        "quota",
        "quota_change",
        "election",
    }
    assert {row["type"] for row in rows} == cluster
    for row in rows:
        below = [inner for name in ("partitions", "synonyms", "entity") for inner in row.get(name, [])]
        for name in (row["type"], *row, *(name for inner in below for name in inner)):
            assert f"`{name}`" in DOCUMENT, name


@pytest.mark.parametrize(
    "group",
    [
        "acls",
        "bench",
        "brokers",
        "cleaner",
        "cluster",
        "configs",
        "features",
        "groups",
        "quotas",
        "topics",
        "transactions",
        "watch",
    ],
)
def test_every_subcommand_is_documented_and_has_examples(lamina: Lamina, group: str) -> None:
    command = app.get_command(click.Context(app), group)
    assert isinstance(command, click.Group)
    section = DOCUMENT.partition(f"## `lamina {group}")[2].partition("\n## ")[0]
    for name in command.commands:
        assert re.search(rf"([`|]|`{group} ){name}\b", section), name
        assert "Examples:" in lamina(group, name, "--help").out


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


def test_every_field_that_is_told_of_groups_is_documented(records: Records, topic: str) -> None:
    records.make(topic)
    where = ("--json", "--bootstrap-server", records.address)
    reset = ("reset-offsets", f"group-of-{topic}", "--topic", topic, "--to-latest", "--execute")
    rows = records.lamina("groups", *reset, *where).objects
    for asked in (("list",), ("describe", f"group-of-{topic}"), ("lag", f"group-of-{topic}")):
        rows += records.lamina("groups", *asked, *where).objects
    assert {row["type"] for row in rows} == {"reset_offset", "group", "lag", "lag_total"}
    for row in rows:
        for name in (*names_in(row), row["type"]):
            assert f"`{name}`" in DOCUMENT, name


def test_every_command_and_exit_status_is_documented() -> None:
    assert all(f"## `lamina {name}" in DOCUMENT for name in COMMANDS)
    statuses = [value for name, value in vars(outcome).items() if name.isupper() and type(value) is int]
    assert all(f"\n| {value} | " in DOCUMENT for value in statuses)
