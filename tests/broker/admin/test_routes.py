"""What each reading route says of a broker that runs."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from lamina import __version__
from lamina.settings.lists import BROKER_SETTINGS
from tests.broker.admin.asking import admin_address, ask, get, refused
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient, batch_of, metadata_request

NOW_MS = time.time_ns() // 1_000_000


def admin_of(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address})


def test_a_broker_that_serves_is_alive_and_ready(broker: BrokerProcess) -> None:
    assert get(broker, "/healthz") == {"status": "alive"}
    assert get(broker, "/readyz") == {"status": "ready", "reasons": [], "warnings": []}


def test_a_broker_with_a_directory_offline_is_alive_and_not_ready(
    own_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    broker = own_broker("--set", f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}", "--set", "num.partitions=2")
    with RawClient(broker) as client:
        client.create_topic("t")
        lost = 0 if (tmp_path / "one" / "t-0").is_dir() else 1
        shutil.move(tmp_path / "one", tmp_path / "elsewhere")
        (tmp_path / "one").write_bytes(b"")
        client.ask(metadata_request("another"))
        broker.wait_for_log("is offline")
    told = ask(broker, "/readyz")
    assert (told.status, told.body["status"]) == (503, "not_ready")
    [reason] = told.body["reasons"]
    assert str(tmp_path / "one") in reason
    assert get(broker, "/healthz") == {"status": "alive"}
    offline = get(broker, f"/v1/topics/t/partitions/{lost}")
    assert (offline["is_online"], offline["log_end_offset"], offline["size_bytes"]) == (False, None, None)
    assert offline["failure"]
    assert get(broker, f"/v1/topics/t/partitions/{1 - lost}")["is_online"] is True
    assert get(broker, "/v1/topics/t")["offline_partitions"] == 1
    assert refused(broker, f"/v1/topics/t/partitions/{lost}/segments", 503)
    online = {one["path"]: one["is_online"] for one in get(broker, "/v1/logs")["log_dirs"]}
    assert online == {str(tmp_path / "one"): False, str(tmp_path / "two"): True}


def test_the_index_lists_routes_that_are_there(broker: BrokerProcess) -> None:
    routes = get(broker, "/v1/")["routes"]
    assert {"/healthz", "/readyz", "/v1/topics"} <= {route["path"] for route in routes}
    for route in routes:
        # What /metrics tells is no JSON: test_watching.py reads it. What is to be explained has to be said.
        is_special = route["path"] in ("/metrics", "/v1/cleaner/explain")
        if route["method"] == "GET" and "{" not in route["path"] and not is_special:
            get(broker, route["path"])
        shows_records = route["path"] == "/v1/cleaner/explain"
        assert route["needs_token"] == (route["method"] != "GET" or shows_records)
        is_for_all = route["path"] in ("/healthz", "/readyz")
        role = None if is_for_all else "viewer" if route["method"] == "GET" else "operator"
        assert route["role"] == role


def test_brokers(broker: BrokerProcess) -> None:
    told = get(broker, "/v1/brokers")
    assert (told["cluster_id"], told["controller_id"]) == (broker.facts["cluster_id"], 1)
    [one] = told["brokers"]
    assert (one["node_id"], one["is_controller"], one["is_this_broker"]) == (1, True, True)
    assert one["endpoints"] == [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": broker.port}]
    host, port = admin_address(broker)
    assert (one["admin"], one["version"], one["rack"]) == ([f"{host}:{port}"], __version__, None)
    assert 0 < one["started_ms"] <= one["replication"]["now_ms"] <= time.time_ns() // 1_000_000
    assert one["replication"]["leader_partitions"] == one["partitions"]
    assert one["replication"]["under_replicated_partitions"] == one["replication"]["replica_max_lag"] == 0
    assert one["replication"]["is_session_proven"]
    assert one["replication"]["was_session_proven"]


def test_a_topic_its_partitions_and_how_far_they_reach(broker: BrokerProcess, topic: str, raw: RawClient) -> None:
    admin = admin_of(broker)
    admin.create_topics([NewTopic(topic, 3, 1, config={"retention.ms": "86400000"})])[topic].result(30)
    batch = batch_of((b"k", b"v"), (b"k", b"w"), now_ms=NOW_MS)
    assert raw.produce(topic, batch, partition=2).error_code == 0
    told = get(broker, f"/v1/topics/{topic}")
    topic_id = told.pop("id")
    assert (broker.log_dir / f"{topic}-0/partition.metadata").read_text().endswith(f"topic_id: {topic_id}")
    assert told == {
        "name": topic,
        "is_internal": False,
        "partitions": 3,
        "replication_factor": 1,
        "size_bytes": len(batch),
        "offline_partitions": 0,
        "configs": {"retention.ms": "86400000"},
    }
    expected = {
        "topic": topic,
        "partition": 2,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "isr": [1],
        "adding_replicas": [],
        "removing_replicas": [],
        "is_online": True,
        "failure": None,
        "log_dir": str(broker.log_dir),
        "log_start_offset": 0,
        "log_end_offset": 2,
        "high_watermark": 2,
        "last_stable_offset": 2,
        "recovery_point": 0,
        "segments": 1,
        "size_bytes": len(batch),
    }
    assert get(broker, f"/v1/topics/{topic}/partitions/2") == expected
    listed = get(broker, f"/v1/topics/{topic}/partitions")
    assert [one["partition"] for one in listed["partitions"]] == [0, 1, 2]
    assert listed["partitions"][2] == expected
    assert listed["next_after"] is None


def test_a_deleted_topic_is_gone(broker: BrokerProcess, topic: str, raw: RawClient) -> None:
    raw.create_topic(topic)
    get(broker, f"/v1/topics/{topic}")
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result(30)
    refused(broker, f"/v1/topics/{topic}", 404)


def test_segments_with_their_offsets_sizes_and_times(own_broker: Callable[..., BrokerProcess], topic: str) -> None:
    broker = own_broker("--set", "log.segment.bytes=1048576")
    batches = [batch_of((b"k", bytes(500_000)), now_ms=NOW_MS + number) for number in range(5)]
    with RawClient(broker) as client:
        client.create_topic(topic)
        for batch in batches:
            assert client.produce(topic, batch).error_code == 0
    path = f"/v1/topics/{topic}/partitions/0/segments"
    told = get(broker, path)
    assert told["next_after"] is None
    facts = [(one["base_offset"], one["next_offset"], one["is_active"]) for one in told["segments"]]
    assert facts == [(0, 2, False), (2, 4, False), (4, 5, True)]
    assert [one["size_bytes"] for one in told["segments"]] == [2 * len(batches[0])] * 2 + [len(batches[0])]
    assert [one["largest_timestamp_ms"] - NOW_MS for one in told["segments"]] == [1, 3, 4]
    for one in told["segments"]:
        file = broker.log_dir / f"{topic}-0" / one["file"]
        assert one["modified_ms"] == file.stat().st_mtime_ns // 1_000_000
    first = get(broker, f"{path}?limit=1")
    assert (first["segments"], first["next_after"]) == (told["segments"][:1], 0)
    assert get(broker, f"{path}?after=0")["segments"] == told["segments"][1:]
    (broker.log_dir / f"{topic}-0" / f"{0:020d}.timeindex").unlink()
    assert get(broker, path)["segments"][0]["largest_timestamp_ms"] is None, "looking does not heal"


def test_lists_come_in_pages(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    names = [f"topic-{number:02}" for number in range(7)]
    admin = admin_of(broker)
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(30)
    admin.create_partitions([NewPartitions(names[0], 5)])[names[0]].result(30)
    for path, key, limit, expected in (
        ("/v1/topics", "name", 3, names),
        (f"/v1/topics/{names[0]}/partitions", "partition", 2, list(range(5))),
    ):
        found: list[str | int] = []
        after: str | int | None = None
        pages = 0
        while pages == 0 or after is not None:
            told = get(broker, f"{path}?limit={limit}" + ("" if after is None else f"&after={after}"))
            rows = told[path.rpartition("/")[2]]
            assert len(rows) <= limit
            found += [row[key] for row in rows]
            after = told["next_after"]
            pages += 1
        assert found == expected
        assert pages == -(-len(expected) // limit)
    assert get(broker, "/v1/topics?after=zzz") == {"topics": [], "next_after": None}
    assert get(broker, f"/v1/topics/{names[0]}/partitions?after=99")["partitions"] == []


def test_settings_with_their_sources(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker("--set", "log.retention.hours=5")
    set_to_three = ConfigEntry("num.recovery.threads.per.data.dir", "3", incremental_operation=AlterConfigOpType.SET)
    admin = admin_of(broker)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[set_to_three])
    admin.incremental_alter_configs([resource])[resource].result(30)
    settings = {one["name"]: one for one in get(broker, "/v1/settings")["settings"]}
    assert set(settings) == set(BROKER_SETTINGS)
    told = {name: (one["value"], one["source"], one["is_dynamic"]) for name, one in settings.items()}
    assert told["log.retention.hours"] == ("5", "set", False)
    assert told["lamina.data.dir"] == (str(broker.data_dir), "flag", False)
    assert told["num.recovery.threads.per.data.dir"] == ("3", "dynamic_broker", True)
    assert told["broker.rack"] == (None, "default", False)
    assert settings["node.id"] == {
        "name": "node.id",
        "value": "1",
        "source": "default",
        "type": "int",
        "is_dynamic": False,
        "is_sensitive": False,
        "doc": BROKER_SETTINGS["node.id"].doc,
    }


def test_connections(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    assert get(broker, "/v1/connections") == {"connections": [], "next_after": None}
    with RawClient(broker) as one, RawClient(broker) as two:
        for client in (one, two):
            client.ask(metadata_request())
        told = get(broker, "/v1/connections")["connections"]
        assert [row["peer"] for row in told] == sorted((one.peer, two.peer))
        for row in told:
            assert (row["listener"], row["client_software"], row["is_waiting"]) == ("PLAINTEXT", None, False)
            assert row["idle_ms"] >= 0
        first = get(broker, "/v1/connections?limit=1")
        rest = get(broker, f"/v1/connections?after={first['next_after']}")
        assert [row["peer"] for row in first["connections"] + rest["connections"]] == sorted((one.peer, two.peer))


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/v1/topics/no-such", 404, "no-such"),
        ("/v1/topics/no-such/partitions", 404, "no-such"),
        ("/v1/topics/no-such/partitions/0", 404, "no-such"),
        ("/v1/topics/%00%ff/partitions/0/segments", 404, "there is no topic"),
        ("/v1/topics/there/partitions/1", 404, "has 1 partitions and no 1"),
        ("/v1/topics/there/partitions/x", 400, "whole number"),
        ("/v1/topics/there/partitions/-1", 400, "whole number"),
        ("/v1/topics/there/partitions/²", 400, "whole number"),
        ("/v1/topics/there/partitions/" + "9" * 5000, 400, "whole number"),
        ("/v1/topics/there/partitions?after=x", 400, "after"),
        ("/v1/topics/there/partitions/0/segments?after=-1", 400, "after"),
        ("/v1/topics?limit=0", 400, "between 1 and 1000"),
        ("/v1/topics?limit=1001", 400, "between 1 and 1000"),
        ("/v1/topics?limit=ten", 400, "limit"),
        ("/v1/topics/", 404, "/v1/"),
        ("/v2/", 404, "/v1/"),
        ("/", 404, "/v1/"),
        ("/../../etc/passwd", 404, "/v1/"),
    ],
)
def test_what_is_not_there_or_not_meant(
    broker: BrokerProcess, raw: RawClient, path: str, status: int, said: str
) -> None:
    raw.create_topic("there")
    assert said in refused(broker, path.replace("²", "%C2%B2"), status)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_a_wrong_method_is_told_the_right_ones(broker: BrokerProcess, method: str) -> None:
    told = ask(broker, "/v1/topics", method)
    assert told.status == 405
    assert {one.strip() for one in told.headers["Allow"].split(",")} == {"GET", "HEAD"}


def test_head_is_get_without_a_body(broker: BrokerProcess) -> None:
    told = ask(broker, "/healthz", "HEAD")
    assert (told.status, told.body) == (200, None)


def test_answers_are_json_that_no_other_page_may_read(broker: BrokerProcess) -> None:
    told = ask(broker, "/v1/settings", headers={"Origin": "http://example.org"})
    assert not [name for name in told.headers if name.lower().startswith("access-control-")]
    assert told.headers["X-Content-Type-Options"] == "nosniff"
    assert told.headers["Cache-Control"] == "no-store"


def test_transactions_are_told(broker: BrokerProcess, topic: str) -> None:
    def told_of_it() -> Any:
        every = get(broker, "/v1/transactions?limit=1000")["transactions"]
        [told] = [one for one in every if one["transactional_id"] == topic]
        return told

    with RawClient(broker) as client:
        client.create_topic(topic)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(30) == 0
    told = told_of_it()
    assert (told["transactional_id"], told["state"], told["timeout_ms"]) == (topic, "Ongoing", 60_000)
    assert told["partitions"] == [{"topic": topic, "partition": 0}]
    assert told["started_ms"] >= NOW_MS
    producer.commit_transaction(30)
    told = told_of_it()
    assert (told["state"], told["partitions"]) == ("CompleteCommit", [])
