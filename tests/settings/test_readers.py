"""A setting that no code reads is a promise that nobody keeps.

One whose definition says that nothing reads it must have no reader. A broker's setting is read where its constant is
loaded outside the definitions, or as the fallback of one that is read. A topic's setting and its pair are read where
the field of LogConfig that they change is read outside this room.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

from lamina.settings.lists import AREAS, BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from tests.settings.test_topic_config import OVERRIDES

SOURCE = Path(__file__).parents[2] / "src" / "lamina"
ROOM = SOURCE / "settings"
# They name settings, but do nothing with a broker's values.
DEFINITIONS = {Path(str(module.__file__)) for _, module in AREAS} | {
    ROOM / "lists.py",
    ROOM / "document.py",
    ROOM / "topic_config.py",
}
NOT_OF_LOGS = {"unclean.leader.election.enable"}
"""Topics' settings that are in no LogConfig: the controller reads them."""


@cache
def _names_read(file: Path) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


@cache
def _constants_read() -> set[str]:
    return set().union(*(_names_read(file) for file in SOURCE.rglob("*.py") if file not in DEFINITIONS))


@cache
def _fields_read() -> set[str]:
    return set().union(*(_names_read(file) for file in SOURCE.rglob("*.py") if ROOM not in file.parents))


def _constant(name: str) -> str:
    return name.upper().replace(".", "_")


def _topic_readers() -> set[str]:
    of_logs = {name for name, _, field, _ in OVERRIDES if field in _fields_read()}
    return of_logs | {name for name in NOT_OF_LOGS if _constant(name) in _constants_read()}


def _group_readers() -> set[str]:
    return {name for name in GROUP_SETTINGS if _constant(name) in _constants_read()}


def _broker_readers() -> set[str]:
    """The settings whose values somebody uses, with those that speak for them."""
    heads = [setting for name, setting in BROKER_SETTINGS.items() if _constant(name) in _constants_read()]
    heads += [pair for name in _topic_readers() if (pair := TOPIC_SETTINGS[name].pair) is not None]
    heads += [pair for name in _group_readers() if (pair := GROUP_SETTINGS[name].pair) is not None]
    return {step.setting.name for head in heads for step in head.chain}


@pytest.mark.parametrize("name", sorted(TOPIC_SETTINGS))
def test_every_topic_setting_has_a_reader_or_says_that_it_has_none(name: str) -> None:
    assert (name in _topic_readers()) is not bool(TOPIC_SETTINGS[name].unread)


@pytest.mark.parametrize("name", sorted(GROUP_SETTINGS))
def test_every_group_setting_has_a_reader(name: str) -> None:
    assert name in _group_readers()


@pytest.mark.parametrize("name", sorted(BROKER_SETTINGS))
def test_every_broker_setting_has_a_reader_or_says_that_it_has_none(name: str) -> None:
    assert (name in _broker_readers()) is not bool(BROKER_SETTINGS[name].unread)


def test_every_topic_setting_is_tried_in_the_table_of_overrides() -> None:
    read = {name for name, setting in TOPIC_SETTINGS.items() if not setting.unread}
    assert {name for name, *_ in OVERRIDES} == read - NOT_OF_LOGS
