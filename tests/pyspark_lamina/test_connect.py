"""Topics over Spark Connect: the package is on the server, the client knows nothing of it (``make peers-spark``)."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.arrow.dataframes import environment
from tests.arrow.topics import create, numbered, produce
from tests.broker.process import BrokerProcess
from tests.producing.tasks import until_seen
from tests.pyspark_lamina.connect import ConnectServer
from tests.schema_registry.registry import avro, framed, serving

PRICE = {"type": "record", "name": "Price", "fields": [{"name": "cents", "type": "long"}]}

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_client_reads_streams_and_writes(own_broker: Callable[[], BrokerProcess], tmp_path: Path) -> None:
    servers = own_broker().address
    for topic in ("orders", "written", "copied", "prices"):
        create(servers, topic, 2)
    for partition in range(2):
        produce(servers, "orders", numbered(5, first=5 * partition), partition=partition)
    with serving() as registry, ConnectServer(tmp_path / "server") as server:
        number = registry.add(PRICE, subject="prices-value")
        produce(servers, "prices", [(b"a", framed(number, avro(PRICE, {"cents": 1250})))])
        told = run_client(server, tmp_path, servers, registry.url)
    assert told["batch"] == [[partition, n, f"k{5 * partition + n}"] for partition in range(2) for n in range(5)]
    assert told["view"] == [[f"v{n}"] for n in range(10)]
    assert told["stream"] == [[partition, n] for partition in range(2) for n in range(5)]
    assert "there is no topic 'nowhere'" in told["error"]
    assert told["imported"] == []
    assert told["decoded"] == [[1250, None]]
    until_seen(servers, "written", [str(n) for n in range(10)])
    until_seen(servers, "copied", [f"v{n}" for n in range(10)])


def run_client(server: ConnectServer, directory: Path, servers: str, registry: str) -> dict[str, Any]:
    facts = {
        "connect": server.address,
        "servers": servers,
        "registry": registry,
        "read_checkpoint": str(directory / "read"),
        "write_checkpoint": str(directory / "write"),
    }
    client = str(Path(__file__).with_name("connect_client.py"))
    done = subprocess.run(
        [sys.executable, client, json.dumps(facts)],
        env=environment(),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-5_000:] + server.logged()
    found: dict[str, Any] = json.loads(done.stdout)
    return found
