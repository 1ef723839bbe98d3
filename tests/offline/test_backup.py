"""A backup under load: real clients write, segments roll and are deleted, topics come and go; then it is restored."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from lamina.errors import ErrorCode
from lamina.records.batch import walk
from lamina.wire.versions import request_schema
from tests.broker.process import BrokerProcess, eventually
from tests.broker.raw import RawClient, batch_of
from tests.cli.running import run_process

SEGMENT_BYTES = 1 << 20
VALUE = b"v" * 50_000
INIT_PRODUCER_ID = 22


class Load:
    """Threads that go on until the load is over; the first error of any ends the test."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int] = {}
        """By topic, the offset behind the last record that was acknowledged."""
        self.producer_ids: list[int] = []
        self.errors: list[BaseException] = []
        self._over = threading.Event()

    @contextmanager
    def of(self, *works: Callable[[], Iterator[None]]) -> Iterator[None]:
        def run(work: Callable[[], Iterator[None]]) -> None:
            try:
                for _ in work():
                    if self._over.is_set():
                        return
            except BaseException as error:
                self.errors.append(error)

        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        assert self.errors == []

    def grow_by(self, records: int) -> None:
        """Wait until every topic has so many more."""
        goals = {topic: end + records for topic, end in self.acknowledged.items()}
        eventually(
            lambda: bool(self.errors) or all(self.acknowledged[topic] >= goal for topic, goal in goals.items()),
            seconds=60,
        )
        assert self.errors == []

    def produce(self, broker: BrokerProcess, topic: str, *, is_idempotent: bool) -> Callable[[], Iterator[None]]:
        self.acknowledged[topic] = 0

        def work() -> Iterator[None]:
            with RawClient(broker) as client:
                producer_id = new_producer_id(client) if is_idempotent else -1
                self.producer_ids.append(producer_id)
                for number in range(1_000_000):
                    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": number}
                    value = b"%d " % number + VALUE
                    batch = batch_of((b"k", value), now_ms=int(time() * 1000), **(fields if is_idempotent else {}))
                    answer = client.produce(topic, batch)
                    assert answer.error_code == ErrorCode.NONE
                    assert answer.base_offset == number
                    self.acknowledged[topic] = number + 1
                    yield

        return work


def new_producer_id(client: RawClient) -> int:
    request: Any = request_schema(INIT_PRODUCER_ID, 4)
    answer = client.ask(request(transactional_id=None, transaction_timeout=1000, producer_id=-1, producer_epoch=-1))
    assert answer.error_code == ErrorCode.NONE
    return int(answer.producer_id)


def come_and_go(broker: BrokerProcess) -> Callable[[], Iterator[None]]:
    """Topics are made, written to, and deleted."""

    def work() -> Iterator[None]:
        admin = AdminClient({"bootstrap.servers": broker.address})
        with RawClient(broker) as client:
            for number in range(1_000_000):
                names = [f"passing-{number % 7}-{each}" for each in range(3)]
                for future in admin.create_topics([NewTopic(name, 2) for name in names]).values():
                    future.result(30)
                for name in names:
                    client.produce(name, batch_of((b"k", VALUE), now_ms=int(time() * 1000)))
                yield
                for future in admin.delete_topics(names).values():
                    future.result(30)
                yield

    return work


def batches_in(partition: Path) -> dict[int, bytes]:
    found = {}
    for path in sorted(partition.glob("*.log")):
        data = path.read_bytes()
        for position, header in walk(data):
            found[header.base_offset] = data[position : position + header.size_bytes]
    return found


def files_below(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def test_a_backup_under_load_holds_all_that_was_acknowledged_before_it_began(tmp_path: Path) -> None:
    settings = (
        f"log.segment.bytes={SEGMENT_BYTES}",
        "log.flush.offset.checkpoint.interval.ms=50",
        "log.retention.check.interval.ms=50",
        "log.segment.delete.delay.ms=1",
    )
    broker = BrokerProcess(tmp_path / "data", *(word for text in settings for word in ("--set", text)))
    load = Load()
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        short = NewTopic("short", 1, config={"retention.bytes": str(2 * SEGMENT_BYTES)})
        for future in admin.create_topics([NewTopic("plain", 1), NewTopic("idempotent", 1), short]).values():
            future.result(30)
        with load.of(
            load.produce(broker, "plain", is_idempotent=False),
            load.produce(broker, "idempotent", is_idempotent=True),
            load.produce(broker, "short", is_idempotent=True),
            come_and_go(broker),
        ):
            load.grow_by(80)
            before = dict(load.acknowledged)
            outcome = run_process("backup", "--dir", broker.data_dir, tmp_path / "backup", "--json")
            assert outcome.status == 0, outcome.err
            load.grow_by(80)
    summary = outcome.objects[-1]
    assert summary["missing"] == []
    assert summary["linked_bytes"] > 0
    assert run_process("verify", "--dir", tmp_path / "backup/logs").status == 0
    taken = {(row["topic"], row["partition"]): row for row in outcome.objects[:-1]}
    assert {"plain", "idempotent", "short"} <= {topic for topic, _ in taken}

    source_files = files_below(broker.data_dir)
    backup_files = files_below(tmp_path / "backup")
    restored = tmp_path / "restored"
    assert run_process("restore", tmp_path / "backup", "--dir", restored).status == 0
    with BrokerProcess(restored) as again, RawClient(again) as client:
        assert not [line for line in again.log if "cannot be used" in line or "adopt" in line], again.log
        given = new_producer_id(client)
        assert given > max(load.producer_ids)
        for (topic, partition), row in taken.items():
            assert client.list_offset(topic, -1, partition=partition).offset == row["end_offset"]
            answer = client.produce(topic, batch_of((b"k", VALUE), now_ms=int(time() * 1000)), partition=partition)
            assert answer.error_code == ErrorCode.NONE
            assert answer.base_offset == row["end_offset"]
    assert run_process("verify", "--dir", restored / "logs").status == 0
    for topic, end in before.items():
        row = taken[topic, 0]
        assert row["end_offset"] >= end
        ours, theirs = batches_in(broker.log_dir / f"{topic}-0"), batches_in(restored / "logs" / f"{topic}-0")
        ours_then = {base: data for base, data in ours.items() if base < row["end_offset"]}
        assert list(theirs) == list(range(min(theirs), row["end_offset"] + 1))
        assert ours_then.items() <= theirs.items()
        if topic != "short":
            assert min(theirs) == 0
    assert files_below(broker.data_dir) == source_files
    assert files_below(tmp_path / "backup") == backup_files
