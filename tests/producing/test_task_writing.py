"""Tasks write rows to a real broker, and a driver ends their transactions: what readers of committed records see."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import pyarrow as pa

from lamina.errors import KafkaError, NetworkError, TopicAuthorizationFailed, TransactionalIdAuthorizationFailed
from lamina.producing.batch_ending import abort, commit
from lamina.producing.decisions import BatchName, Slot
from lamina.producing.errors import DeliveryFailed, WriteError
from lamina.producing.explaining import explained
from lamina.producing.session import Session
from lamina.producing.task_writing import Attempt, write_at_least_once, write_once
from tests.arrow.topics import create
from tests.broker.process import BrokerProcess
from tests.producing.tasks import batch, now_ms, rows, seen, settings, until_seen, write

ROOT = Path(__file__).parents[2]


def test_rows_of_a_batch_are_seen_when_the_driver_commits_it(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, topic)
    for number in range(3):
        attempts = write(sink, number, [[f"{number}a", f"{number}b"], [f"{number}c"], []])
        assert attempts[2] == Attempt()
        assert len(seen(broker.address, topic)) == 3 * number
        commit(sink, batch(sink, number), attempts, now_ms)
        until_seen(broker.address, topic, [f"{one}{letter}" for one in range(number + 1) for letter in "abc"])


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_a_value_of_64_mebibytes_goes_where_the_topic_takes_it(broker: BrokerProcess, topic: str, codec: str) -> None:
    create(broker.address, topic, config={"max.message.bytes": "80000000"})
    values = ["before", "x" * (64 << 20), "after"]
    write_at_least_once(settings(broker.address, topic, compression_type=codec), [rows(values)], now_ms)
    assert seen(broker.address, topic) == sorted(values)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_batches_fit_a_topic_that_takes_small_ones_only(broker: BrokerProcess, topic: str, codec: str) -> None:
    create(broker.address, topic, 2, config={"max.message.bytes": "5000"})
    sink = settings(broker.address, topic, compression_type=codec)
    values = [f"{number:0100}" for number in range(3_000)]
    commit(sink, batch(sink, 0), write(sink, 0, [values[:2_000], values[2_000:]]), now_ms)
    until_seen(broker.address, topic, values)


def test_a_batch_that_is_done_already_is_not_written_again(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, topic)
    name = batch(sink, 0)
    commit(sink, name, write(sink, 0, [["a"]]), now_ms)
    again = write(sink, 0, [["a"]])
    assert [one.transaction for one in again] == [None]
    commit(sink, name, again, now_ms)
    until_seen(broker.address, topic, ["a"])


def test_a_batch_without_rows_is_done(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, topic)
    commit(sink, batch(sink, 0), write(sink, 0, [[], []]), now_ms)
    commit(sink, batch(sink, 1), write(sink, 1, [["a"]]), now_ms)
    until_seen(broker.address, topic, ["a"])


def test_an_attempt_that_fails_leaves_nothing_open(broker: BrokerProcess, topic: str) -> None:
    sink = settings(broker.address, topic)
    name = batch(sink, 0)

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
    sink = settings(broker.address, topic)
    name = batch(sink, 0)
    abort(sink, name, write(sink, 0, [["lost"]]), now_ms)
    attempts = write(sink, 0, [["kept"]])
    commit(sink, name, attempts, now_ms)
    abort(sink, name, attempts, now_ms)
    until_seen(broker.address, topic, ["kept"])


def test_a_query_whose_name_begins_like_another_leaves_the_others_transactions_alone(
    broker: BrokerProcess, topic: str
) -> None:
    sink = settings(broker.address, topic)
    longer, name = BatchName(f"q-{topic}-task-1", 0), batch(sink, 0)
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
    sentence = rf"^{topic}-0: 1 record could not be written: .*MESSAGE_TOO_LARGE"
    with pytest.raises(DeliveryFailed, match=sentence):
        write_at_least_once(settings(broker.address, topic), [rows(["x" * 3_000_000])], now_ms)


def test_a_broker_that_is_not_there_is_one_sentence() -> None:
    sink = settings("127.0.0.1:1", "t", default_api_timeout_ms="50")
    with pytest.raises(NetworkError, match=r"^127\.0\.0\.1:1 cannot be reached .*tried in vain for 50 ms"):
        write(sink, 0, [["never"]])


def test_a_broker_that_dies_in_the_middle_is_told_and_nothing_of_the_batch_is_seen(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker()
    broker.keep_port()
    create(broker.address, "t")
    impatient = settings(broker.address, "t", delivery_timeout_ms="500", default_api_timeout_ms="500")

    def dying() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            if number == 1:
                broker.kill()
            yield rows([f"{number}" * 1000] * 5000)

    with pytest.raises(DeliveryFailed, match=r"^t-0: .*records could not be written: .* \(NETWORK_EXCEPTION\)$"):
        write_once(impatient, batch(impatient, 0), Slot(0, 0), dying(), now_ms)
    broker.start()
    assert seen(broker.address, "t") == []
    sink = settings(broker.address, "t")
    commit(sink, batch(sink, 0), [write_once(sink, batch(sink, 0), Slot(0, 1), [rows(["kept"])], now_ms)], now_ms)
    until_seen(broker.address, "t", ["kept"])


def test_a_timeout_that_the_brokers_do_not_allow_is_told_before_anything_is_written(
    broker: BrokerProcess, topic: str
) -> None:
    sink = settings(broker.address, topic, transaction_timeout_ms=str(2**31 - 1))
    with pytest.raises(WriteError, match="the brokers do not allow transactions of 2147483647 ms: set kafka"):
        write(sink, 0, [["a"]])


def test_a_decision_topic_that_forgets_is_refused(broker: BrokerProcess, topic: str) -> None:
    forgetting = f"{topic}-decisions"
    create(broker.address, forgetting, config={"cleanup.policy": "delete"})
    sink = replace(settings(broker.address, topic), decision_topic=forgetting)
    with pytest.raises(WriteError, match=r"forgets decisions, because its cleanup.policy is delete: set it to compact"):
        commit(sink, batch(sink, 0), write(sink, 0, [["never"]]), now_ms)
    assert seen(broker.address, topic) == []


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


@pytest.mark.long
def test_millions_of_rows_go_through_a_task_in_bounded_memory(broker: BrokerProcess, topic: str) -> None:
    peaks = [_peak_mib(broker.address, f"{topic}-{chunks}", chunks) for chunks in (20, 300)]
    assert peaks[1] < peaks[0] + 30


def _peak_mib(servers: str, topic: str, chunks: int) -> int:
    """Of a process that writes so many times 10,000 rows of 100 bytes."""
    program = (
        "import resource; from tests.producing.tasks import *; "
        f"chunk = rows(['x' * 100] * 10_000); sink = settings({servers!r}, {topic!r}, buffer_memory='8388608'); "
        f"write_once(sink, batch(sink, 0), Slot(0, 0), (chunk for _ in range({chunks})), now_ms); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(told.stdout)
