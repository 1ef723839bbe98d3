"""The command-line tools that come with Kafka, against Lamina."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.peers.kafka import KafkaFailedError, run_tool
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def topics(lamina: Lamina, *arguments: str) -> str:
    return run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", lamina.bootstrap, *arguments)


def configs(lamina: Lamina, *arguments: str) -> str:
    return run_tool("kafka.admin.ConfigCommand", "--bootstrap-server", lamina.bootstrap, *arguments)


def offsets(lamina: Lamina, topic: str, time: str) -> list[str]:
    arguments = ("--bootstrap-server", lamina.bootstrap, "--topic", topic, "--time", time)
    return run_tool("org.apache.kafka.tools.GetOffsetShell", *arguments).split()


def perform(lamina: Lamina, topic: str, count: int, *producer_configs: str) -> str:
    arguments = ("--topic", topic, "--num-records", str(count), "--record-size", "100", "--throughput", "-1")
    servers = f"bootstrap.servers={lamina.bootstrap}"
    return run_tool(
        "org.apache.kafka.tools.ProducerPerformance", *arguments, "--producer-props", servers, *producer_configs
    )


def test_kafka_topics_makes_lists_describes_grows_and_deletes(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "tool", "--partitions", "2", "--config", "segment.bytes=1048576")
    assert "tool" in topics(lamina, "--list").split()
    described = topics(lamina, "--describe", "--topic", "tool")
    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*segment.bytes=1048576", described)
    topics(lamina, "--alter", "--topic", "tool", "--partitions", "4")
    assert "PartitionCount: 4" in topics(lamina, "--describe", "--topic", "tool")
    topics(lamina, "--delete", "--topic", "tool")
    assert "tool" not in topics(lamina, "--list").split()


def test_kafka_configs_sets_describes_and_deletes_a_topics_config(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "configured", "--partitions", "1")
    of_topic = ("--entity-type", "topics", "--entity-name", "configured")
    configs(lamina, *of_topic, "--alter", "--add-config", "retention.ms=86400000")
    assert "retention.ms=86400000" in configs(lamina, *of_topic, "--describe")
    configs(lamina, *of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in configs(lamina, *of_topic, "--describe")
    assert "retention.ms=604800000" in configs(lamina, *of_topic, "--describe", "--all")


def test_kafka_configs_sets_a_default_for_all_brokers(lamina: Lamina) -> None:
    of_brokers = ("--entity-type", "brokers", "--entity-default")
    configs(lamina, *of_brokers, "--alter", "--add-config", "log.retention.ms=7200000")
    assert "log.retention.ms=7200000" in configs(lamina, *of_brokers, "--describe")


def test_kafka_configs_finds_the_groups_on_which_something_is_set(lamina: Lamina) -> None:
    of_group = ("--entity-type", "groups", "--entity-name", "tuned")
    configs(lamina, *of_group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    described = configs(lamina, "--entity-type", "groups", "--describe")
    assert re.search(r"Dynamic configs for group tuned are:\s+consumer.session.timeout.ms=50000", described)


def test_kafka_topics_gets_a_topic_of_many_partitions_page_by_page(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "wide", "--partitions", "30")
    described = topics(lamina, "--describe", "--topic", "wide", "--partition-size-limit-per-response", "7")
    assert sorted(map(int, re.findall(r"Partition: (\d+)", described))) == list(range(30))


def test_producer_performance_and_consumer_offsets_agree(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "performed", "--partitions", "1")
    for codec in ("none", "lz4"):
        assert "5000 records sent" in perform(lamina, "performed", 5000, f"compression.type={codec}")
    assert offsets(lamina, "performed", "-1") == ["performed:0:10000"]
    assert offsets(lamina, "performed", "-2") == ["performed:0:0"]


def test_the_verifiable_producer_gets_every_acknowledgement(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "verified", "--partitions", "1")
    arguments = ("--bootstrap-server", lamina.bootstrap, "--topic", "verified", "--max-messages", "500", "--acks", "-1")
    printed = run_tool("org.apache.kafka.tools.VerifiableProducer", *arguments)
    said = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert said[-1]["name"] == "tool_data"
    assert (said[-1]["sent"], said[-1]["acked"]) == (500, 500)
    assert sorted(int(event["value"]) for event in said if event["name"] == "producer_send_success") == list(range(500))


def test_the_console_consumer_reads_one_partition(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "console", "--partitions", "1")
    perform(lamina, "console", 20)
    where = ("--bootstrap-server", lamina.bootstrap, "--topic", "console", "--partition", "0", "--offset", "earliest")
    limits = ("--max-messages", "20", "--timeout-ms", "20000")
    printed = run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *where, *limits)
    assert "Processed a total of 20 messages" in printed
    assert len([line for line in printed.splitlines() if re.fullmatch(r"[A-Z]{100}", line)]) == 20


def test_kafka_delete_records_moves_the_start(lamina: Lamina, tmp_path: Path) -> None:
    topics(lamina, "--create", "--topic", "trimmed", "--partitions", "1")
    perform(lamina, "trimmed", 10)
    wanted = {"version": 1, "partitions": [{"topic": "trimmed", "partition": 0, "offset": 4}]}
    (tmp_path / "offsets.json").write_text(json.dumps(wanted))
    arguments = ("--bootstrap-server", lamina.bootstrap, "--offset-json-file", str(tmp_path / "offsets.json"))
    run_tool("org.apache.kafka.tools.DeleteRecordsCommand", *arguments)
    assert offsets(lamina, "trimmed", "-2") == ["trimmed:0:4"]


def test_kafka_log_dirs_shows_sizes(lamina: Lamina) -> None:
    topics(lamina, "--create", "--topic", "sized", "--partitions", "1")
    perform(lamina, "sized", 10)
    arguments = ("--bootstrap-server", lamina.bootstrap, "--describe", "--topic-list", "sized")
    printed = run_tool("org.apache.kafka.tools.LogDirsCommand", *arguments)
    (described,) = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    (directory,) = described["brokers"][0]["logDirs"]
    (partition,) = directory["partitions"]
    assert partition["partition"] == "sized-0"
    assert partition["size"] > 1000


def test_the_broker_tells_its_versions_and_its_cluster(lamina: Lamina) -> None:
    printed = run_tool("org.apache.kafka.tools.BrokerApiVersionsCommand", "--bootstrap-server", lamina.bootstrap)
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", printed)
    printed = run_tool("org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", lamina.bootstrap)
    assert re.search(r"Cluster ID: [\w-]{22}$", printed.strip())


def test_kafka_configs_shows_and_sets_the_levels_of_loggers(lamina: Lamina) -> None:
    of_loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    assert "lamina.broker.network=INFO" in configs(lamina, *of_loggers, "--describe")
    configs(lamina, *of_loggers, "--alter", "--add-config", "lamina.broker.network=DEBUG")
    assert "lamina.broker.network=DEBUG" in configs(lamina, *of_loggers, "--describe")
    configs(lamina, *of_loggers, "--alter", "--delete-config", "lamina.broker.network")
    assert "lamina.broker.network=INFO" in configs(lamina, *of_loggers, "--describe")
    with pytest.raises(KafkaFailedError, match=r"Invalid broker logger.*lamina\.absent"):
        configs(lamina, *of_loggers, "--alter", "--add-config", "lamina.absent=DEBUG")
