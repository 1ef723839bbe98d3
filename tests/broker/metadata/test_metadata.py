"""Changing the metadata when the store cannot take a change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

CREATE_TOPICS, METADATA = 19, 3


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    started = InProcessBroker(tmp_path, {})
    yield started
    started.close()


def create(broker: InProcessBroker, name: str) -> int:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    (answer,) = broker.ask(CREATE_TOPICS, 7, topics=[topic]).topics
    assert isinstance(answer.error_code, int)
    return answer.error_code


def test_a_full_disk_refuses_changes_and_ends_no_broker(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fatal(reason: str) -> None:
        raise AssertionError(reason)

    monkeypatch.setattr(broker.parts.metadata, "_on_fatal", fatal)
    database = broker.parts.storage.database._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    names = [f"topic-{number}-{'x' * 200}" for number in range(100)]
    made = []
    for name in names:
        code = create(broker, name)
        if code:
            break
        made.append(name)
    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert {topic.name for topic in broker.ask(METADATA, 12, topics=None).topics} == set(made)
    database.execute("PRAGMA max_page_count = 1000000")
    assert create(broker, name) == 0
    broker.restart()
    assert {topic.name for topic in broker.ask(METADATA, 12, topics=None).topics} == {*made, name}
