"""docs/compaction.md and docs/spark-engine.md speak of settings and limits that exist."""

import re
from pathlib import Path

import pytest

from bench.large_logs import LIMITS, MEBIBYTE
from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS

DOCS = Path(__file__).parents[2] / "docs"
COMPACTION, SPARK = ((DOCS / name).read_text() for name in ("compaction.md", "spark-engine.md"))
_SETTING = re.compile(r"`((?:log|lamina|cleanup|delete|file|min|max|segment)\.[a-z.]+)(?:=[^`]*)?`")
_OF_SPARK = "lamina.spark.conf."
_SHOWN_ONLY = {"lamina.compaction"}


@pytest.mark.parametrize("text", [COMPACTION, SPARK])
def test_every_setting_that_is_named_exists(text: str) -> None:
    named = {name for name in _SETTING.findall(text) if not name.startswith(_OF_SPARK)}
    assert named
    assert named <= {*BROKER_SETTINGS, *TOPIC_SETTINGS, *_SHOWN_ONLY}


def test_the_memory_that_is_stated_is_what_a_soak_holds_the_cleaner_to() -> None:
    rows = re.findall(r"^\| (broker|engine|Java|each worker)[^|]*\| ([\d,]+) MiB \|", COMPACTION, re.M)
    stated = {name.split()[-1].lower(): int(figure.replace(",", "")) * MEBIBYTE for name, figure in rows}
    assert stated == LIMITS
