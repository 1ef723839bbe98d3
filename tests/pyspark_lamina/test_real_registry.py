"""Apicurio Registry, which keeps its schemas in a topic of Lamina, and values that Confluent's serializers wrote."""

from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest
from pyspark.sql import Row

from lamina.cluster.ports import free_port
from pyspark_lamina.functions import from_registry
from tests.arrow.topics import create
from tests.broker.process import BrokerProcess
from tests.cli.running import run_process
from tests.peers.registry import apicurio, serialize
from tests.peers.serializing import VALUE
from tests.pyspark_lamina.reading import Topics
from tests.pyspark_lamina.session import spark_session


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_what_confluents_serializers_write_is_decoded(own_broker: Callable[[], BrokerProcess], tmp_path: Path) -> None:
    broker = own_broker()
    create(broker.address, "orders")
    port, log = free_port(), tmp_path / "registry.log"
    with apicurio(broker.address, log, port) as url:
        serialize(broker.address, url, "orders")
    # It was killed: what it knows after this start, it has read from Lamina.
    with apicurio(broker.address, log, port) as url:
        with spark_session(tmp_path / "spark") as spark:
            _spark_decodes(Topics(spark, broker.address), url)
        _consume_decodes(broker, url)


def _spark_decodes(topics: Topics, url: str) -> None:
    decoded = from_registry("value", url, subject="orders-value").alias("decoded")
    found = topics.load({"subscribe": "orders"}).select("offset", decoded).orderBy("offset").collect()
    first, second, in_json, gone = (row["decoded"] for row in found)
    assert _told(first) == VALUE | {"note": "none"}
    assert _told(second) == VALUE | {"at": None, "note": "new"}
    assert "its schema is of type JSON Schema" in in_json["error"]
    assert gone is None


def _told(decoded: Row) -> dict[str, object]:
    assert decoded["error"] is None
    told: dict[str, object] = decoded["value"].asDict(recursive=True)
    at = decoded["value"]["at"]
    return told | {"at": None if at is None else at.astimezone(UTC)}


def _consume_decodes(broker: BrokerProcess, url: str) -> None:
    where = ("--bootstrap-server", broker.address, "--schema-registry", url)
    outcome = run_process("consume", "orders", *where)
    order = '{"id":7,"total":{"amount":"12.50"},"day":"2026-01-31","at":%s,"tags":["a","é"]%s}'
    assert outcome.out.splitlines() == [
        order % ('"2026-01-31T12:00:00Z"', ""),
        order % ("null", ',"note":"new"'),
        '{"id":8}',
        "",
    ]
    first, *_ = run_process("consume", "orders", "--json", *where).objects
    assert (first["key"], first["key_schema_id"], first["value"]["id"]) == ("plain", None, 7)
    assert first["value_schema_id"] > 0
