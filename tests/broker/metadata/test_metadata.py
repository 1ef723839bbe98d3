"""Changing the metadata: what is not done on the loop, and a store that cannot take a change."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lamina.broker.metadata import alone, applied, publisher
from lamina.errors import ErrorCode
from lamina.image.changes import begin_leader_epochs
from lamina.store.sqlite import SqliteStore
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


@pytest.mark.parametrize(
    ("module", "compute"), [(publisher, "diff"), (applied, "mark_made"), (applied, "remove_topic")]
)
def test_what_looks_at_every_topic_is_done_on_a_thread(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, module: ModuleType, compute: str
) -> None:
    done_on = set()
    computed = getattr(module, compute)

    def spied(*given: Any) -> Any:
        done_on.add(threading.current_thread())
        return computed(*given)

    monkeypatch.setattr(module, compute, spied)
    broker.create("t")
    broker.delete("t")
    assert done_on
    assert threading.current_thread() not in done_on


def test_who_leads_everything_from_its_start_on_decides_so_on_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elected_on = []

    def spied(*given: Any) -> Any:
        elected_on.append(threading.current_thread())
        return begin_leader_epochs(*given)

    monkeypatch.setattr(alone, "begin_leader_epochs", spied)
    InProcessBroker(tmp_path, {}).close()
    assert [thread is threading.current_thread() for thread in elected_on] == [False]


def test_a_full_disk_refuses_changes_and_ends_no_broker(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fatal(reason: str) -> None:
        raise AssertionError(reason)

    monkeypatch.setattr(broker.parts.participant, "_on_fatal", fatal)
    store = broker.parts.storage.database
    assert isinstance(store, SqliteStore)
    database = store._database
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
