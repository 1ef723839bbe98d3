"""Kafka and Lamina find the same directory of a killed Kafka and make the same files of it.

Producer snapshots are left out: Kafka forgets expired producers later than Lamina, and the fixture's are old.
Leader epochs too: Kafka begins a new one in every log that it leads.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lamina.settings.log_config import LogConfig
from tests.fixtures.kafka_data import DirectoryTruth, load_fixture
from tests.fixtures.make_kafka_data import SETTINGS
from tests.peers.kafka import Kafka
from tests.peers.lamina_log import recover_directory

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

COMPARED = {".log", ".index", ".timeindex", ".txnindex"}
DEFAULT = LogConfig()


def log_configs(truth: DirectoryTruth) -> dict[tuple[str, int], LogConfig]:
    """Every partition with the settings that it had in Kafka."""
    found: dict[tuple[str, int], LogConfig] = {}
    for name, topic in truth.topics.items():
        config = LogConfig(
            segment_bytes=int(topic.configs.get("internal.segment.bytes", DEFAULT.segment_bytes)),
            index_interval_bytes=int(topic.configs.get("index.interval.bytes", DEFAULT.index_interval_bytes)),
            segment_index_bytes=int(topic.configs.get("segment.index.bytes", SETTINGS["log.index.size.max.bytes"])),
        )
        found |= {(name, number): config for number in range(len(topic.partitions))}
    return found


def compared_files(data_directory: Path, partitions: list[tuple[str, int]]) -> dict[str, bytes]:
    return {
        str(file.relative_to(data_directory)): file.read_bytes()
        for topic, number in partitions
        for file in (data_directory / f"{topic}-{number}").iterdir()
        if file.suffix in COMPARED
    }


def test_lamina_recovers_the_files_of_a_killed_kafka_as_kafka_does(tmp_path: Path) -> None:
    fixture = load_fixture(tmp_path / "lamina").unclean
    kafka = Kafka(tmp_path / "kafka", SETTINGS)
    shutil.copytree(fixture.directory, kafka.data_directory)
    with kafka:
        kafka.stop()
    configs = log_configs(fixture)
    recover_directory(fixture.directory, configs)
    partitions = list(configs)
    from_kafka = compared_files(kafka.data_directory, partitions)
    from_lamina = compared_files(fixture.directory, partitions)
    assert from_lamina.keys() == from_kafka.keys()
    assert {name for name, content in from_kafka.items() if from_lamina[name] != content} == set()
