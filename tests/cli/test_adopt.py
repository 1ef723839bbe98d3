"""Partitions that a broker does not know, taken in while it is stopped."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient, batch_of
from tests.cli.running import Lamina


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as process:
        yield process


def fill(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker) as client:
        client.create_topic(topic)
        # Older than any retention: only a topic that retention leaves alone keeps it.
        for number in range(3):
            client.produce(topic, batch_of((None, b"%d" % number), now_ms=1_600_000_000_000 + number))
    broker.stop()


def end_offset(broker: BrokerProcess, topic: str) -> int:
    with RawClient(broker) as client:
        found = client.list_offset(topic, -1)
        assert found.error_code == ErrorCode.NONE
        assert client.fetch(topic, 0).error_code == ErrorCode.NONE
        return int(found.offset)


def test_partitions_from_elsewhere_are_copied_in(lamina: Lamina, broker: BrokerProcess, tmp_path: Path) -> None:
    fill(broker, "orders")
    other = BrokerProcess(tmp_path / "other").start()
    other.stop()
    outcome = lamina("adopt", broker.log_dir, "--data-dir", other.data_dir)
    assert (outcome.status, outcome.err) == (0, "")
    assert "orders" in outcome.out
    assert "copied" in outcome.out
    assert (broker.log_dir / "orders-0").is_dir(), "the source is left as it is"
    with other:
        assert end_offset(other, "orders") == 3
        assert not [line for line in other.log if "adopt" in line]
    broker.start()


def test_what_lies_in_the_log_directory_stays_in_place(lamina: Lamina, broker: BrokerProcess, tmp_path: Path) -> None:
    fill(broker, "orders")
    target = tmp_path / "fresh"
    fresh = BrokerProcess(target).start()
    fresh.stop()
    shutil.copytree(broker.log_dir / "orders-0", fresh.log_dir / "orders-0")
    fresh.start()
    fresh.wait_for_log(f"{fresh.log_dir}/orders-0")
    fresh.stop()
    outcome = lamina("adopt", fresh.log_dir / "orders-0", "--data-dir", target)
    assert outcome.status == 0
    assert "in place" in outcome.out
    again = lamina("adopt", fresh.log_dir / "orders-0", "--data-dir", target)
    assert (again.status, again.out) == (0, "")
    assert "nothing to import" in again.err
    with fresh:
        assert end_offset(fresh, "orders") == 3
    broker.start()


def test_a_lost_partition_can_be_brought_back(lamina: Lamina, broker: BrokerProcess, tmp_path: Path) -> None:
    fill(broker, "orders")
    saved = tmp_path / "backup" / "orders-0"
    shutil.move(broker.log_dir / "orders-0", saved)
    assert lamina("adopt", saved, "--data-dir", broker.data_dir).status == 0
    broker.start()
    assert end_offset(broker, "orders") == 3


def test_a_topic_of_the_same_name_is_not_touched(lamina: Lamina, broker: BrokerProcess, tmp_path: Path) -> None:
    fill(broker, "orders")
    with BrokerProcess(tmp_path / "other") as other:
        fill(other, "orders")
    outcome = lamina("adopt", broker.log_dir, "--data-dir", other.data_dir)
    assert outcome.status == 1
    assert "already exists" in outcome.err
    broker.start()


def test_a_broker_at_work_is_left_alone(lamina: Lamina, broker: BrokerProcess, tmp_path: Path) -> None:
    with RawClient(broker) as client:
        client.create_topic("orders")
    for args in ((tmp_path, "--data-dir", broker.data_dir), (broker.log_dir, "--data-dir", tmp_path / "new")):
        outcome = lamina("adopt", *args)
        assert outcome.status == 1
        assert outcome.err.count("\n") == 1
        assert "in use" in outcome.err


def test_a_directory_that_holds_no_partition(lamina: Lamina, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcome = lamina("adopt", tmp_path / "empty", "--data-dir", tmp_path / "data")
    assert outcome.status == 1
    assert "neither a partition's directory" in outcome.err
