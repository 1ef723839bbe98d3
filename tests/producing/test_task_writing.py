"""Tasks write rows to a real broker, and a driver ends their transactions: what readers of committed records see."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import pyarrow as pa

import lamina.arrow
from lamina.arrow.properties import parse_properties
from lamina.errors import KafkaError, TopicAuthorizationFailed, TransactionalIdAuthorizationFailed
from lamina.producing.batch_ending import abort, commit
from lamina.producing.decisions import BatchName, Slot
from lamina.producing.errors import DeliveryFailed, WriteError
from lamina.producing.explaining import explained
from lamina.producing.properties import parse_producer_properties
from lamina.producing.session import Session
from lamina.producing.sink_settings import SinkSettings
from lamina.producing.task_writing import Attempt, write_at_least_once, write_once
from tests.broker.process import BrokerProcess

NOW_MS = 1_700_000_000_000


def settings(servers: str, topic: str | None, **properties: str) -> SinkSettings:
    given = {"bootstrap.servers": servers, **{name.replace("_", "."): value for name, value in properties.items()}}
    producer = parse_producer_properties(given, is_transactional=True)
    return SinkSettings(parse_properties(given), producer, topic, decision_topic="decisions")


def rows(values: list[str], **columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string()), **columns})


def now_ms() -> int:
    return NOW_MS


def seen(servers: str, topic: str) -> list[str]:
    """By readers of committed records."""
    reader = lamina.arrow.read(
        topic, ["value"], bootstrap_servers=servers, properties={"isolation.level": "read_committed"}
    )
    return sorted(value.as_py().decode() for value in reader.read_all().column("value"))


def until_seen(servers: str, topic: str, wanted: list[str]) -> None:
    """Markers are written after the end of a transaction is confirmed."""
    for _ in range(1_000):
        if seen(servers, topic) == wanted:
            return
    assert seen(servers, topic) == wanted


def write(sink: SinkSettings, batch: int, values: list[list[str]]) -> list[Attempt]:
    """One task for each list."""
    name = BatchName(f"q-{sink.topic}", batch)
    return [write_once(sink, name, Slot(task, 0), [rows(one)], now_ms) for task, one in enumerate(values)]


def test_rows_of_a_batch_are_seen_when_the_driver_commits_it(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, topic)
    for batch in range(3):
        attempts = write(sink, batch, [[f"{batch}a", f"{batch}b"], [f"{batch}c"], []])
        assert attempts[2] == Attempt()
        assert len(seen(broker.address, topic)) == 3 * batch
        commit(sink, BatchName(f"q-{topic}", batch), attempts, now_ms)
        until_seen(broker.address, topic, sorted(f"{n}{letter}" for n in range(batch + 1) for letter in "abc"))


def test_a_batch_that_is_done_already_is_not_written_again(broker: BrokerProcess, topic: str) -> None:
    sink, name = settings(broker.address, topic), BatchName(f"q-{topic}", 0)
    commit(sink, name, write(sink, 0, [["a"]]), now_ms)
    again = write(sink, 0, [["a"]])
    assert [one.transaction for one in again] == [None]
    commit(sink, name, again, now_ms)
    until_seen(broker.address, topic, ["a"])


def test_a_batch_without_rows_is_done(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, topic)
    commit(sink, BatchName(f"q-{topic}", 0), write(sink, 0, [[], []]), now_ms)
    commit(sink, BatchName(f"q-{topic}", 1), write(sink, 1, [["a"]]), now_ms)
    until_seen(broker.address, topic, ["a"])


def test_an_attempt_that_fails_leaves_nothing_open(broker: BrokerProcess, topic: str) -> None:
    sink, name = settings(broker.address, topic), BatchName(f"q-{topic}", 0)

    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(["lost"] * 100)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_once(sink, name, Slot(0, 0), broken(), now_ms)
    with Session(sink.client) as session:
        assert session.run(sink.ledger(session, name.query, now_ms).open_transactions()) == []
    commit(sink, name, [write_once(sink, name, Slot(0, 1), [rows(["kept"])], now_ms)], now_ms)
    until_seen(broker.address, topic, ["kept"])


def test_a_driver_that_gives_a_batch_up_aborts_it_unless_it_is_decided(broker: BrokerProcess, topic: str) -> None:
    sink, name = settings(broker.address, topic), BatchName(f"q-{topic}", 0)
    abort(sink, name, write(sink, 0, [["lost"]]), now_ms)
    attempts = write(sink, 0, [["kept"]])
    commit(sink, name, attempts, now_ms)
    abort(sink, name, attempts, now_ms)
    until_seen(broker.address, topic, ["kept"])


def test_a_query_whose_name_begins_like_another_leaves_the_others_transactions_alone(
    broker: BrokerProcess, topic: str
) -> None:
    sink = settings(broker.address, topic)
    longer, name = BatchName(f"q-{topic}-task-1", 0), BatchName(f"q-{topic}", 0)
    attempt = write_once(sink, longer, Slot(0, 0), [rows(["longer"])], now_ms)
    commit(sink, name, write(sink, 0, [["shorter"]]), now_ms)
    commit(sink, longer, [attempt], now_ms)
    until_seen(broker.address, topic, ["longer", "shorter"])


def test_rows_are_written_at_least_once_without_a_transaction(broker: BrokerProcess, topic: str) -> None:
    write_at_least_once(settings(broker.address, topic), [rows(["a"]), rows([]), rows(["b"])], now_ms)
    until_seen(broker.address, topic, ["a", "b"])


def test_rows_choose_their_topic_where_no_option_does(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, None)
    topics = pa.array([f"{topic}-x", f"{topic}-y", f"{topic}-x"])
    write_at_least_once(sink, [rows(["a", "b", "c"], topic=topics)], now_ms)
    assert seen(broker.address, f"{topic}-x") == ["a", "c"]
    assert seen(broker.address, f"{topic}-y") == ["b"]
    with pytest.raises(WriteError, match="a row has no topic"):
        write_at_least_once(sink, [rows(["a"], topic=pa.array([None], pa.string()))], now_ms)


def test_a_topic_that_does_not_exist_is_one_sentence(
    own_broker: Callable[..., BrokerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.producing.topic_sizes._APPEARS_WITHIN_SECONDS", 0.0)
    broker = own_broker("--set", "auto.create.topics.enable=false")
    with pytest.raises(WriteError, match=r"^there is no topic 'nowhere'; create it before it is written to$"):
        write_at_least_once(settings(broker.address, "nowhere"), [rows(["a"])], now_ms)


def test_a_record_that_is_too_large_is_told_with_its_partition_and_kafkas_error(
    broker: BrokerProcess, topic: str
) -> None:
    sentence = rf"^{topic}-0: 1 records could not be written: .*MESSAGE_TOO_LARGE"
    with pytest.raises(DeliveryFailed, match=sentence):
        write_at_least_once(settings(broker.address, topic), [rows(["x" * 3_000_000])], now_ms)


def test_a_timeout_that_the_brokers_do_not_allow_is_told_before_anything_is_written(
    broker: BrokerProcess, topic: str
) -> None:
    sink = settings(broker.address, topic, transaction_timeout_ms=str(2**31 - 1))
    with pytest.raises(WriteError, match="the brokers do not allow transactions of 2147483647 ms: set kafka"):
        write(sink, 0, [["a"]])


@pytest.mark.parametrize("error", [TopicAuthorizationFailed("no"), TransactionalIdAuthorizationFailed("no")])
def test_missing_rights_are_named_with_the_way_around_them(error: KafkaError) -> None:
    with (
        pytest.raises(
            WriteError,
            match=r"Allow Write and Describe on the transactional ids that begin with lamina-q-, and Read, Write and "
            r"Describe on topic decisions, .*exactlyOnce=false$",
        ),
        explained(settings("localhost:9092", "t"), "q"),
    ):
        raise error
