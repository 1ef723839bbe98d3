"""docs/spark-writing.md speaks of all options and columns; its examples run in tests/pyspark_lamina/writing.py."""

import re
from pathlib import Path

from lamina.producing.columns import WRITABLE
from lamina.producing.sink_settings import DEFAULT_DECISION_TOPIC, DEFAULT_PREFIX
from pyspark_lamina.sink_options import OURS

GUIDE = (Path(__file__).parents[2] / "docs/spark-writing.md").read_text()


def table(heading: str) -> dict[str, str]:
    """The rest of each row, by what stands first in it."""
    lines = GUIDE.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    return {found[1]: found[2] for line in lines if (found := re.match(r"\| `([^`]+)` \|(.*)", line))}


def test_every_option_is_told_and_no_other() -> None:
    options = table("Options")
    assert sorted(options) == sorted([*OURS, "kafka.bootstrap.servers", "kafka.*"])
    assert f"`{DEFAULT_DECISION_TOPIC}`" in options["decisionTopic"]
    assert f"`{DEFAULT_PREFIX}`" in options["transactionalIdPrefix"]


def test_every_column_is_told_with_its_types() -> None:
    columns = table("Columns")
    assert sorted(columns) == sorted(WRITABLE)
    for name, kinds in WRITABLE.items():
        assert " or ".join(kinds) in columns[name].replace("`", "")
