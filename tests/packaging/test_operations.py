"""docs/operations.md speaks of settings, files and commands that exist."""

import re
from pathlib import Path

from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/operations.md").read_text()
_SETTING = re.compile(r"`([a-z]+(?:\.[a-z]+)+)`")
_NO_SETTINGS = {"metadata.db", "meta.properties", "directory.id"}
"""Files, and what is in them."""


def test_every_setting_that_is_named_exists() -> None:
    named = set(_SETTING.findall(DOCUMENT)) - _NO_SETTINGS
    assert len(named) > 15
    assert named <= {*BROKER_SETTINGS, *TOPIC_SETTINGS}


def test_every_file_of_the_repository_that_is_linked_exists() -> None:
    linked = re.findall(r"\]\(\.\./([^)]+)\)", DOCUMENT)
    assert linked
    assert all((ROOT / path).exists() for path in linked)


def test_settings_are_said_to_change_while_running_if_they_do() -> None:
    section = DOCUMENT.split("## Limits")[1].split("##")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    for names, _, changes in rows:
        for name in _SETTING.findall(names):
            assert (BROKER_SETTINGS[name].update.value != "read-only") is (changes.strip() == "yes"), name
