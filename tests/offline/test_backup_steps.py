"""Metadata changes between any two steps of a backup: what is restored serves every partition that it knows."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import pytest

from lamina.log.backup.copier import Step
from lamina.log.files import Disk
from lamina.offline.backup import Backup, Circumstances, take_backup
from lamina.offline.restore import restore
from lamina.records.record import Record, build_batch
from lamina.settings.resolve import resolve_broker
from lamina.store.producer_ids import BLOCK_SIZE
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker

T = TypeVar("T")
CREATE_PARTITIONS, DELETE_TOPICS, INIT_PRODUCER_ID = 37, 20, 22


def drive(steps: Generator[Step, None, T], act: Callable[[int, Step], None] = lambda _number, _step: None) -> T:
    number = 0
    try:
        while True:
            act(number, next(steps))
            number += 1
    except StopIteration as end:
        result: T = end.value
        return result


def new_producer_id(broker: InProcessBroker) -> int:
    return int(broker.ask(INIT_PRODUCER_ID, 4, producer_id=-1, producer_epoch=-1).producer_id)


def delete(broker: InProcessBroker, name: str = "b") -> None:
    answer = broker.ask(DELETE_TOPICS, 5, topic_names=[name], timeout=30_000)
    assert answer.responses[0].error_code == 0


def delete_and_make_again(broker: InProcessBroker) -> None:
    delete(broker)
    broker.create("b", 2)
    broker.produce("b", 1)


def grow(broker: InProcessBroker) -> None:
    """A topic, partitions, a restart with its new epochs, and a producer id of another block in an old log."""
    broker.create("c", 2)
    broker.produce("c", 3)
    answer = broker.ask(CREATE_PARTITIONS, 3, topics=[{"name": "b", "count": 4, "assignments": None}], timeout=30_000)
    assert answer.results[0].error_code == 0
    broker.produce("b", 2, partition=3)
    broker.restart()
    broker.produce("a", 1)
    batch = build_batch(
        [Record(0, broker.parts.clocks.now_ms(), b"k", b"v")],
        producer_id=new_producer_id(broker),
        producer_epoch=0,
        base_sequence=0,
    )
    topic = {"name": "z", "partition_data": [{"index": 0, "records": bytes(batch)}]}
    answer = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[topic])
    assert answer.responses[0].partition_responses[0].error_code == 0


def back_up(path: Path, act: Callable[[int, Step], None]) -> Backup:
    circumstances = Circumstances(Disk(), lambda _path: True, lambda: None, lambda _bytes: None)
    settings = resolve_broker(flags={"lamina.data.dir": str(path / "data")})
    return drive(take_backup(settings, str(path / "backup"), circumstances, may_link=True), act)


@pytest.mark.parametrize("change", [delete, delete_and_make_again, grow])
@pytest.mark.parametrize("step", [0, 2, 6, 8, 12, 18, 19])
def test_a_change_at_any_step(
    tmp_path: Path, step: int, change: Callable[[InProcessBroker], None], caplog: pytest.LogCaptureFixture
) -> None:
    source = InProcessBroker(tmp_path / "data", {"file.delete.delay.ms": "1"})
    changed_after: list[str] = []

    def act(number: int, done: Step) -> None:
        if number == step:
            changed_after.append(done.what)
            change(source)

    try:
        for name in ("a", "b", "z"):
            source.create(name, 2 if name == "b" else 1)
            source.produce(name, 5)
        source.produce("b", 5, partition=1)
        first_id = new_producer_id(source)
        backup = back_up(tmp_path, act)
    finally:
        source.close()
    assert changed_after
    assert backup.missing == []
    assert set(backup.deleted) <= {"b"}
    settings = resolve_broker(flags={"lamina.data.dir": str(tmp_path / "restored")})
    drive(restore(settings, str(tmp_path / "backup"), Disk(), lambda _bytes: None))
    caplog.clear()
    restored = InProcessBroker(tmp_path / "restored", {})
    try:
        assert restored.parts.metadata.image.topics.keys() == {"a", "z"} | ({"b"} - set(backup.deleted))
        for topic in restored.parts.metadata.image.topics.values():
            assert len(topic.partitions) == (2 if topic.name == "b" else 1)
            for index in range(len(topic.partitions)):
                assert restored.produce(topic.name, 1, index) in (5, 6)
        blocks = 2 if change is grow and changed_after != ["reconciled"] else 1
        assert new_producer_id(restored) == first_id + blocks * BLOCK_SIZE
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
    finally:
        restored.close()
