"""docs/arrow.md speaks of all arguments and columns; its examples run with pandas, Polars and DuckDB."""

import re
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pytest

import lamina.arrow
from lamina.arrow.reading import COLUMN_TYPES
from tests.arrow.dataframes import environment
from tests.arrow.topics import create, produce
from tests.broker.process import BrokerProcess

GUIDE = (Path(__file__).parents[2] / "docs/arrow.md").read_text()
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
ORDERS = [(b"a", b'{"item": "apples", "count": 3}'), (b"b", b'{"item": "pears", "count": 1}')]
MORE_ORDERS = [(b"a", b'{"item": "apples", "count": 2}')]

PRINTED = """\
2 records from offset 0
1 records from offset 0
['{"item": "apples", "count": 3}', '{"item": "pears", "count": 1}', '{"item": "apples", "count": 2}']
[('apples', 5), ('pears', 1)]
[('apples', 5), ('pears', 1)]
3 records
3 1
"""


def test_every_argument_and_every_column_is_told() -> None:
    rows = [line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert told == list(signature(lamina.arrow.read).parameters)
    for name in COLUMN_TYPES:
        assert f"`{name}`" in GUIDE


@pytest.mark.spark
def test_the_examples_run(own_broker: Callable[[], BrokerProcess], tmp_path: Path) -> None:
    servers = own_broker().address
    create(servers, "orders", 2)
    produce(servers, "orders", ORDERS)
    produce(servers, "orders", MORE_ORDERS, partition=1)
    given = f"servers, directory = {servers!r}, {str(tmp_path / 'parquet')!r}\n"
    script = tmp_path / "guide.py"
    script.write_text(given + "\n".join(EXAMPLE.findall(GUIDE)))
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == (PRINTED, "")
