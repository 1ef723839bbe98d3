"""docs/spark.md speaks of all options, and of no others; its examples run in tests/pyspark_lamina/test_in_spark.py."""

import re
from pathlib import Path

from lamina.arrow.prefetching import DEFAULT_POLL_TIMEOUT_MS
from pyspark_lamina import options
from pyspark_lamina.option_values import duration_ms

GUIDE = (Path(__file__).parents[2] / "docs/spark.md").read_text()
TABLE = GUIDE.split("## Options")[1].split("## Clusters")[0]


def test_every_option_is_told_and_no_other() -> None:
    rows = [line.split("|")[1] for line in TABLE.splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(told) == sorted([*options.KNOWN, "kafka.bootstrap.servers"])


def test_what_is_ours_alone_is_marked() -> None:
    marked = set(re.findall(r"`(\w+)`\*", TABLE))
    assert marked == {
        "maxBytesPerPartition",
        "maxRecordsPerTrigger",
        "maxBytesPerTrigger",
        "commitGroup",
        "view",
        "readFiles",
    }


def test_refused_properties_are_told() -> None:
    for name in ("auto.offset.reset", "enable.auto.commit", "interceptor.classes"):
        assert f"`{name}`" in TABLE
        assert name in options.REFUSED


def test_defaults_are_told() -> None:
    assert f"`{options.DEFAULT_TRIGGER_DELAY}`" in TABLE
    assert duration_ms("", options.DEFAULT_TRIGGER_DELAY) == 900_000
    assert str(DEFAULT_POLL_TIMEOUT_MS) in TABLE
