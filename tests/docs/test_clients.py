"""docs/clients.md: the fixture on it starts a broker that a client can use, and nothing is left of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIXTURE = re.compile(r"```python\n(import json.*?)```", re.DOTALL)
TEST = """

def test_a_record_comes_back(bootstrap_servers: str) -> None:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce("greetings", b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["greetings"])
    while (message := consumer.poll(30)) is not None and message.error() is not None:
        pass
    assert message is not None
    assert message.value() == b"hello"
    consumer.close()
"""


def test_the_fixture_works_as_it_stands(tmp_path: Path) -> None:
    (found,) = FIXTURE.findall((ROOT / "docs" / "clients.md").read_text())
    (tmp_path / "test_mine.py").write_text(found + TEST)
    command = tmp_path / "bin" / "lamina"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m lamina "$@" --set lamina.spark.master=none\n')
    command.chmod(0o755)
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "1 passed" in told.stdout
