"""kcat, librdkafka's command-line tool, against Lamina."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(60)]

CALL_SECONDS = 30


@pytest.fixture(scope="module")
def kcat() -> str:
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        pytest.exit("There is no `kcat` on the PATH: install it (Debian: apt-get install kcat).", returncode=1)
    return found


def run(kcat: str, lamina: Lamina, *arguments: str, sent: str = "") -> str:
    command = [kcat, "-b", lamina.bootstrap, "-X", "allow.auto.create.topics=true", *arguments]
    finished = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=CALL_SECONDS)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat_reads_back_what_it_sent(kcat: str, lamina: Lamina, codec: str) -> None:
    topic = f"kcat-{codec}"
    lines = [f"key-{number}:{'value ' * 20}{number}" for number in range(100)]
    produce = ("-P", "-t", topic, "-p", "0", "-z", codec, "-K", ":", "-H", "name=content")
    run(kcat, lamina, *produce, sent="\n".join(lines) + "\n")
    printed = run(kcat, lamina, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o|%h|%k:%s\n")
    assert printed.splitlines() == [f"{offset}|name=content|{line}" for offset, line in enumerate(lines)]


def test_an_idempotent_producer(kcat: str, lamina: Lamina) -> None:
    run(kcat, lamina, "-P", "-t", "kcat-idempotent", "-X", "enable.idempotence=true", sent="one\ntwo\n")
    assert run(kcat, lamina, "-C", "-t", "kcat-idempotent", "-e", "-q", "-o", "beginning") == "one\ntwo\n"


def test_metadata_and_offsets_by_time(kcat: str, lamina: Lamina) -> None:
    run(kcat, lamina, "-P", "-t", "kcat-listed", "-p", "0", sent="one\ntwo\n")
    listed = json.loads(run(kcat, lamina, "-L", "-J", "-t", "kcat-listed"))
    assert listed["brokers"] == [{"id": 1, "name": lamina.bootstrap}]
    assert [len(topic["partitions"]) for topic in listed["topics"]] == [1]
    assert "kcat-listed [0] offset 2" in run(kcat, lamina, "-Q", "-t", "kcat-listed:0:-1")
    assert "kcat-listed [0] offset 0" in run(kcat, lamina, "-Q", "-t", "kcat-listed:0:1")
