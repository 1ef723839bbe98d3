from pathlib import Path

from lamina.settings.document import page
from lamina.settings.lists import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS

SETTINGS_MD = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_in_docs_is_what_the_definitions_say() -> None:
    assert SETTINGS_MD.read_text(encoding="utf-8") == page(), "run make docs"


def test_every_setting_that_is_read_has_a_row_except_hidden_ones() -> None:
    rows = {line.split("|")[1].strip() for line in page().splitlines() if line.startswith("| `")}
    settings = (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values())
    assert rows == {f"`{setting.name}`" for setting in settings if not (setting.hidden or setting.unread)}
    assert [setting.name for setting in settings if setting.hidden] == ["internal.segment.bytes"]
