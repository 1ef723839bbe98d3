"""Stopping, starting again, being killed: what was acknowledged is there, and epochs move on."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.broker.parts import closing_threads
from lamina.errors import ErrorCode
from lamina.records.batch import walk
from lamina.records.record import read_records
from tests.broker.process import BrokerProcess
from tests.broker.raw import Closed, RawClient, batch_of, metadata_request

Start = Callable[..., BrokerProcess]


def one(value: bytes) -> bytes:
    return batch_of((None, value), now_ms=time.time_ns() // 1_000_000)


def values_of(client: RawClient, topic: str, count: int) -> list[bytes | None]:
    """The values of the first ``count`` records."""
    values: list[bytes | None] = []
    while len(values) < count:
        answer = client.fetch(topic, len(values))
        assert answer.error_code == 0
        assert answer.records, f"only {len(values)} of {count} are there"
        for position, header in walk(answer.records):
            values += [record.value for record in read_records(answer.records, position, header, 1 << 20)]
    return values[:count]


def leader_epoch(client: RawClient, topic: str) -> int:
    return int(client.ask(metadata_request(topic, create=False)).topics[0].partitions[0].leader_epoch)


def test_a_restart_keeps_everything_and_begins_a_new_leader_epoch(own_broker: Start) -> None:
    broker = own_broker()
    with RawClient(broker) as client:
        topic_id = client.create_topic("kept")
        for number in range(20):
            client.produce("kept", one(b"%d" % number))
        epoch = leader_epoch(client, "kept")
    broker.restart()
    assert broker.facts["recovered_partitions"] == 0
    with RawClient(broker) as client:
        assert client.create_topic("kept") == topic_id
        assert values_of(client, "kept", 20) == [b"%d" % number for number in range(20)]
        assert leader_epoch(client, "kept") == epoch + 1
        assert client.fetch("kept", 0, leader_epoch=epoch).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert client.list_offset("kept", -1, leader_epoch=epoch).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert client.produce("kept", one(b"next")).base_offset == 20


def test_sequences_are_remembered_over_a_restart(own_broker: Start) -> None:
    broker = own_broker()
    at = time.time_ns() // 1_000_000
    batch = batch_of((None, b"v"), now_ms=at, producer_id=3, producer_epoch=0, base_sequence=0)
    with RawClient(broker) as client:
        client.create_topic("t")
        assert client.produce("t", batch).base_offset == 0
    broker.restart()
    with RawClient(broker) as client:
        assert client.produce("t", batch).base_offset == 0
        assert client.list_offset("t", -1).offset == 1


def test_a_kill_loses_nothing_that_was_acknowledged(own_broker: Start) -> None:
    broker = own_broker()
    with RawClient(broker) as client:
        client.create_topic("t")
    for _ in range(3):
        acknowledged: list[bytes] = []
        stopped = threading.Event()

        def write(to: list[bytes] = acknowledged, done: threading.Event = stopped) -> None:
            with RawClient(broker) as client:
                try:
                    while True:
                        value = os.urandom(300)
                        assert client.produce("t", one(value)).error_code == 0
                        to.append(value)
                except (Closed, OSError):
                    done.set()

        with RawClient(broker) as client:
            begin = client.list_offset("t", -1).offset
        writer = threading.Thread(target=write)
        writer.start()
        while len(acknowledged) < 200:
            assert not stopped.wait(0.005)
        broker.kill()
        writer.join()
        broker.start()
        assert broker.facts["recovered_partitions"] == 1
        with RawClient(broker) as client:
            everything = values_of(client, "t", begin + len(acknowledged))
            assert everything[begin:] == acknowledged


def test_a_partition_whose_directory_is_gone_is_never_made_anew(own_broker: Start) -> None:
    broker = own_broker()
    with RawClient(broker) as client:
        topic_id = client.create_topic("lost")
        client.create_topic("kept")
        client.produce("lost", one(b"v"))
    broker.stop()
    shutil.rmtree(broker.log_dir / "lost-0")
    broker.start()
    broker.wait_for_log("lost-0")
    with RawClient(broker) as client:
        assert client.produce("lost", one(b"v")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch(topic_id, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.list_offset("lost", -1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("kept", one(b"v")).error_code == ErrorCode.NONE
    assert not (broker.log_dir / "lost-0").exists()


def test_an_unknown_directory_is_left_alone_and_named(own_broker: Start) -> None:
    broker = own_broker()
    broker.stop()
    stranger = broker.log_dir / "stranger-0"
    stranger.mkdir()
    (stranger / "00000000000000000000.log").write_bytes(b"")
    broker.start()
    assert "adopt" in broker.wait_for_log(str(stranger))
    broker.stop()
    assert [path.name for path in stranger.iterdir()] == ["00000000000000000000.log"]
    broker.start()


def test_the_epoch_in_a_checkpoint_counts_as_well_as_the_stores(own_broker: Start) -> None:
    broker = own_broker()
    with RawClient(broker) as client:
        client.create_topic("t")
        client.produce("t", one(b"v"))
    broker.stop()
    (broker.log_dir / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n41 0\n")
    broker.start()
    with RawClient(broker) as client:
        assert leader_epoch(client, "t") == 42


def test_the_last_directory_going_offline_ends_the_broker_with_status_1(own_broker: Start) -> None:
    broker = own_broker()
    with RawClient(broker) as client:
        client.create_topic("t")
        client.produce("t", one(b"v"))
        # The next new topic needs a directory, and there is a file where the log directory was.
        moved = broker.log_dir.rename(broker.data_dir / "elsewhere")
        broker.log_dir.write_bytes(b"")
        client.ask(metadata_request("another"))
        assert broker.wait() == 1
    assert "no log directory is left" in broker.wait_for_log("no log directory is left")
    assert moved.is_dir()


def test_ctrl_c_stops_as_sigterm_does(own_broker: Start) -> None:
    broker = own_broker()
    os.kill(broker.pid, signal.SIGINT)
    assert broker.wait() == 0
    assert (broker.log_dir / ".kafka_cleanshutdown").is_file()
    assert isinstance(broker.data_dir, Path)


@pytest.mark.parametrize(("recovering", "closing"), [(1, 1), (2, 16)])
def test_more_threads_close_logs_than_recover_them_unless_it_is_done_one_by_one(recovering: int, closing: int) -> None:
    assert closing_threads(recovering) == closing
