"""docs/cluster.md speaks of settings, commands and files that exist, and its server.properties can be used."""

import re
from pathlib import Path

import click

from lamina.broker.admin.listening import advertised_admin
from lamina.cli.app import app
from lamina.image.features import SUPPORTED
from lamina.settings.listeners import admin_listeners, advertised_listeners, listeners
from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS
from lamina.settings.properties import load
from lamina.settings.resolve import resolve_broker
from tests.spec import faults

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/cluster.md").read_text()
_FILES = {"cluster.properties", "metadata.db", "server.properties", "zoo.cfg"}
_TO_COME = {"replica.lag.time.max.ms"}
"""Settings that replication brings."""


def test_every_setting_that_is_named_exists() -> None:
    named = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)`", DOCUMENT)) - _FILES - SUPPORTED.keys()
    assert len(named) > 10
    assert named - _TO_COME <= {*BROKER_SETTINGS, *TOPIC_SETTINGS}


def test_its_server_properties_has_a_listener_for_clients_and_one_for_brokers() -> None:
    text = DOCUMENT.split("On `m1`:")[1].split("```")[1]
    settings = resolve_broker(file=load("\n".join(line.strip() for line in text.splitlines()).encode()))
    assert [one.name for one in listeners(settings)] == ["PLAINTEXT", "BROKERS"]
    assert [one.address for one in advertised_listeners(settings)] == ["m1:9092", "m1:9093"]
    assert not settings.warnings
    # Each under a name of its own: `lamina doctor` and Prometheus ask it from elsewhere.
    admin = admin_listeners(settings)
    assert [one.is_for_this_machine for one in admin] == [False]
    assert [one.address for one in advertised_admin(settings, admin)] == ["m1:9644"]


def test_every_command_on_it_exists() -> None:
    context = click.Context(app)
    used = re.findall(r"[`\n ]lamina ([a-z-]+)(?: ([a-z][a-z-]*))?", DOCUMENT)
    assert len(used) > 8
    for name, below in used:
        command = app.get_command(context, name)
        assert command is not None, name
        assert not (isinstance(command, click.Group) and below) or below in command.commands, (name, below)


def test_every_file_that_is_linked_exists() -> None:
    linked = re.findall(r"\]\(([^)#]+)", DOCUMENT)
    assert len(linked) > 4
    assert all((ROOT / "docs" / path).exists() for path in linked)


def test_every_test_and_every_target_that_is_named_exists() -> None:
    section = DOCUMENT.split("## What we tested")[1].split("\n## ")[0]
    files = set(re.findall(r"tests/[\w/]+\.py", section))
    assert len(files) > 8
    assert all((ROOT / path).is_file() for path in files)
    targets = set(re.findall(r"`make ([a-z-]+)", section))
    assert len(targets) > 6
    known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets <= set(known)


def test_every_fault_has_a_row() -> None:
    section = DOCUMENT.split("## What we tested")[1].split("\n## ")[0]
    assert {int(number) for number in re.findall(r"^\| F(\d+):", section, re.MULTILINE)} == faults()
