"""What is got ready after the start."""

import subprocess
import sys

from tests.broker.process import SOURCES

CODE = """
import sys
from lamina.broker.requests.api_table import APIS
from lamina.broker.requests.warming import warm
from lamina.wire.versions import request_schema, response_schema
before = request_schema.cache_info().currsize + response_schema.cache_info().currsize
warm(APIS, lambda: {stopping})
print(before, request_schema.cache_info().currsize, sum(len(api.versions) for api in APIS), sys.getswitchinterval())
"""


def run(stopping: bool) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(stopping=stopping)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": str(SOURCES)},
    )
    return [float(number) for number in done.stdout.split()]


def test_every_version_is_ready_after_it_and_hardly_any_before() -> None:
    before, ready, offered, interval = run(stopping=False)
    assert before == 0, "schemas are made on first use"
    assert ready == offered
    assert interval == 0.005


def test_a_stop_ends_it() -> None:
    assert run(stopping=True)[1] == 0
