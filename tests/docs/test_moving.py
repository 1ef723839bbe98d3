"""docs/moving.md: its JSON is whole, its commands and files exist, and it has the settings that the test of it uses."""

import json
import re
from pathlib import Path

import click

from lamina.cli.app import app
from tests.peers.test_mirror_maker import COPYING, SOON

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/moving.md").read_text()


def test_its_json_is_whole() -> None:
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)]
    assert [sorted(block) for block in blocks] == [
        ["config", "initial_state", "name"],
        ["offsets"],
        sorted(
            {
                "connector.class",
                "groups",
                "sync.group.offsets.enabled",
                "emit.checkpoints.interval.seconds",
                "sync.group.offsets.interval.seconds",
            }
        ),
    ]


def test_it_has_what_the_test_of_it_sets() -> None:
    assert [name for name in {**COPYING, **SOON} if name not in DOCUMENT] == []


def test_every_command_on_it_exists() -> None:
    context = click.Context(app)
    used = re.findall(r"`lamina ([a-z-]+)(?: ([a-z][a-z-]*))?", DOCUMENT)
    assert len(used) > 3
    for name, below in used:
        command = app.get_command(context, name)
        assert command is not None, name
        assert not (isinstance(command, click.Group) and below) or below in command.commands, (name, below)


def test_every_file_that_is_linked_exists() -> None:
    linked = re.findall(r"\]\(([^)#]+)", DOCUMENT)
    assert len(linked) > 2
    assert all((ROOT / "docs" / path).exists() for path in linked)
