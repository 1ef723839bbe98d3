"""Kafka's tools for features and hanging transactions, against Lamina."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.hanging import PRODUCER_EPOCH, PRODUCER_ID, leave_open_transaction
from tests.peers.kafka import KafkaFailedError, run_tool
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """A broker with a transaction in ``hanging`` that no coordinator knows of."""
    root = tmp_path_factory.mktemp("lamina")
    leave_open_transaction(root / "data")
    with Lamina(root) as broker:
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()


def features(lamina: Lamina, *arguments: str) -> str:
    return run_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", lamina.bootstrap, *arguments)


def transaction_version(lamina: Lamina) -> str:
    """What is told of it."""
    (line,) = [line for line in features(lamina, "describe").splitlines() if "transaction.version" in line]
    return line


def transactions(lamina: Lamina, *arguments: str) -> str:
    return run_tool("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", lamina.bootstrap, *arguments)


def test_kafka_features_describes_downgrades_and_upgrades(lamina: Lamina) -> None:
    line = transaction_version(lamina)
    assert "SupportedMinVersion: 0" in line
    assert "SupportedMaxVersion: 2" in line
    assert "FinalizedVersionLevel: 2" in line
    with pytest.raises(KafkaFailedError, match="only a downgrade may lower it"):
        features(lamina, "upgrade", "--feature", "transaction.version=1")
    features(lamina, "downgrade", "--feature", "transaction.version=1", "--dry-run")
    assert "FinalizedVersionLevel: 2" in transaction_version(lamina)
    features(lamina, "downgrade", "--feature", "transaction.version=1")
    assert "FinalizedVersionLevel: 1" in transaction_version(lamina)
    features(lamina, "upgrade", "--feature", "transaction.version=2")
    assert "FinalizedVersionLevel: 2" in transaction_version(lamina)


def test_kafka_transactions_finds_and_aborts_a_transaction_that_hangs(lamina: Lamina) -> None:
    of_partition = ("--topic", "hanging", "--partition", "0")
    described = transactions(lamina, "describe-producers", *of_partition).splitlines()
    assert described[0].split()[:2] == ["ProducerId", "ProducerEpoch"]
    assert described[1].split()[:2] == [str(PRODUCER_ID), str(PRODUCER_EPOCH)]
    assert described[1].split()[-1] == "2"
    transactions(lamina, "abort", *of_partition, "--start-offset", "2")
    assert transactions(lamina, "describe-producers", *of_partition).splitlines()[1].split()[-1] == "None"
    latest = ("--bootstrap-server", lamina.bootstrap, "--topic", "hanging", "--time", "-1")
    assert run_tool("org.apache.kafka.tools.GetOffsetShell", *latest).split() == ["hanging:0:4"]
