"""The APIs of transactional producers, each in every version: what goes well, and Kafka's error for what does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.coordinators.records.partitioning import partition_of
from lamina.errors import CoordinatorLoadInProgress, ErrorCode
from lamina.image.topic import CONSUMER_OFFSETS
from tests.broker.in_process import InProcessBroker
from tests.broker.transacting import (
    BUMPING,
    CLASSIC,
    FEW_PARTITIONS,
    FIND_COORDINATOR,
    LIST_TRANSACTIONS,
    TRANSACTION_KEY,
    Me,
    Transacting,
    Versions,
    committed,
    fetched_offset,
)

NOBODY = Me(-1, -1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", FEW_PARTITIONS)
    opened.create("t", partitions=2)
    yield opened
    opened.close()


@pytest.fixture
def orders(broker: InProcessBroker) -> Transacting:
    transacting = Transacting(broker)
    transacting.find()
    return transacting


# FindCoordinator


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_finds_the_coordinator_of_a_transactional_id(broker: InProcessBroker, version: int) -> None:
    names: dict[str, Any] = {"key": "orders"} if version < 4 else {"coordinator_keys": ["orders", "other"]}
    answer = broker.ask(FIND_COORDINATOR, version, key_type=TRANSACTION_KEY, **names)
    found = [answer] if version < 4 else answer.coordinators
    assert [(one.error_code, one.node_id, one.host, one.port) for one in found] == [
        (0, broker.parts.metadata.node_id, "broker.test", 9092)
    ] * len(found)
    topic = broker.parts.metadata.image.topics["__transaction_state"]
    assert (len(topic.partitions), topic.partitions[0].replicas) == (2, (broker.parts.metadata.node_id,))


def test_the_topic_that_is_made_is_as_kafkas(broker: InProcessBroker, orders: Transacting) -> None:
    config = broker.parts.metadata.config_of("__transaction_state")
    assert (config.compact, config.delete, config.compression_type) == (True, False, "uncompressed")
    assert (config.min_insync_replicas, config.segment_bytes) == (1, 100 * 1024 * 1024)


# InitProducerId


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_init_raises_the_epoch(orders: Transacting, version: int) -> None:
    first, second = orders.started(version), orders.started(version)
    assert (second.id, first.epoch, second.epoch) == (first.id, 0, 1)


@pytest.mark.parametrize("version", range(6))
def test_init_aborts_what_was_left_open(broker: InProcessBroker, orders: Transacting, version: int) -> None:
    me = orders.started(version)
    assert orders.add(me, ("t", 0)) == [0]
    assert orders.produce(me, [b"a"]) == 0
    assert orders.init(version) == (ErrorCode.CONCURRENT_TRANSACTIONS, NOBODY)
    broker.settle()
    assert orders.state() == "CompleteAbort"
    assert orders.started(version).epoch > me.epoch + 1
    assert committed(broker) == []


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_brokers_is_refused(orders: Transacting, timeout_ms: int) -> None:
    assert orders.init(timeout_ms=timeout_ms).code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, 90)]
)
def test_a_producer_goes_on_unless_another_took_over(orders: Transacting, version: int, code: int) -> None:
    me = orders.started(version)
    assert orders.init(version, me) == (0, Me(me.id, 1))
    assert orders.init(version, me) == (0, Me(me.id, 1)), "its answer was lost"
    orders.started()
    assert orders.init(version, me).code == code
    assert orders.init(version, Me(me.id + 1, 0)).code == code


# AddPartitionsToTxn


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(orders: Transacting, version: int) -> None:
    me = orders.started()
    assert orders.add(me, ("t", 1), ("t", 0), version=version) == [0, 0]
    assert orders.state() == "Ongoing"
    assert orders.add(me, ("t", 1), version=version) == [0]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_verify_and_add_partitions(orders: Transacting, version: int) -> None:
    me = orders.started()
    verify = {"version": version, "verify_only": True}
    assert orders.add_as_broker(me, ("t", 0), **verify) == [ErrorCode.TRANSACTION_ABORTABLE]  # type: ignore[arg-type]
    assert orders.add_as_broker(me, ("t", 0), version=version) == [0]
    assert orders.add_as_broker(me, ("t", 0), ("t", 1), **verify) == [0, 120]  # type: ignore[arg-type]
    assert orders.add_as_broker(Me(me.id, 9), ("t", 0), **verify) == [ErrorCode.PRODUCER_FENCED]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(6))
def test_one_unknown_partition_means_that_none_is_added(orders: Transacting, version: int) -> None:
    me = orders.started()
    add = orders.add if version < 4 else orders.add_as_broker
    assert add(me, ("t", 0), ("t", 2), ("u", 0), version=version) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert orders.state() == "Empty"


@pytest.mark.parametrize("version", range(6))
def test_who_may_not_add_partitions_is_told_why(orders: Transacting, version: int) -> None:
    add = orders.add if version < 4 else orders.add_as_broker
    me = orders.started()
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert add(Me(me.id, me.epoch + 1), ("t", 0), version=version) == [fenced]
    assert add(Me(me.id + 1, 0), ("t", 0), version=version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    other = Transacting(orders.broker, "other")
    add = other.add if version < 4 else other.add_as_broker
    assert add(me, ("t", 0), version=version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    empty = Transacting(orders.broker, "")
    add = empty.add if version < 4 else empty.add_as_broker
    assert add(me, ("t", 0), version=version) == [ErrorCode.INVALID_REQUEST]


# AddOffsetsToTxn and TxnOffsetCommit


@pytest.mark.parametrize("version", range(5))
def test_every_version_adds_the_groups_partition(orders: Transacting, version: int) -> None:
    me = orders.started()
    assert orders.add_offsets(me, version=version) == 0
    (topic,) = orders.describe().topics
    assert (topic.topic, topic.partitions) == (CONSUMER_OFFSETS, (partition_of("readers", 2),))


@pytest.mark.parametrize("version", range(5))
def test_who_may_not_add_offsets_is_told_why(orders: Transacting, version: int) -> None:
    me = orders.started()
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert orders.add_offsets(Me(me.id, 5), version=version) == fenced
    assert orders.add_offsets(Me(77, 0), version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert Transacting(orders.broker, "").add_offsets(me, version=version) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(6))
def test_offsets_are_there_after_the_commit_and_never_after_an_abort(
    broker: InProcessBroker, orders: Transacting, version: int, commit: bool
) -> None:
    me = orders.started()
    if version < 5:
        assert orders.add_offsets(me) == 0
    assert orders.commit_offset(me, 5, version=version) == 0
    assert fetched_offset(broker) == (-1, 0)
    assert fetched_offset(broker, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    broker.restart()
    broker.settle()
    assert fetched_offset(broker, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert orders.commit_offset(me, 6, version=version) == 0
    assert orders.end(me, commit=commit, version=5 if version == 5 else 3).code == 0
    told = (6 if commit else -1, 0)
    assert fetched_offset(broker, stable=True) == told
    broker.restart()
    broker.settle()
    assert fetched_offset(broker, stable=True) == told


@pytest.mark.parametrize("version", range(6))
def test_who_may_not_commit_offsets_is_told_why(orders: Transacting, version: int) -> None:
    me = orders.started()
    if version < 5:
        not_added = ErrorCode.TRANSACTION_ABORTABLE if version == 4 else ErrorCode.INVALID_TXN_STATE
        assert orders.commit_offset(me, 5, version=version) == not_added
        assert orders.add_offsets(me) == 0
    assert orders.commit_offset(Me(me.id, 9), 5, version=version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert orders.commit_offset(Me(77, 0), 5, version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert orders.commit_offset(me, 5, "", version) == ErrorCode.INVALID_GROUP_ID
    assert orders.commit_offset(me, 5, version=version, topic="u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version >= 3:
        stranger: dict[str, Any] = {"member_id": "stranger", "generation_id": 3}
        assert orders.commit_offset(me, 5, version=version, **stranger) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(6))
def test_a_group_that_loads_is_told_as_the_version_knows(
    broker: InProcessBroker, orders: Transacting, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads(_: str) -> None:
        raise CoordinatorLoadInProgress("it loads")

    monkeypatch.setattr(broker.parts.groups, "shard_of", loads)
    told = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert orders.commit_offset(Me(1, 1), 5, version=version) == told


# EndTxn


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
def test_every_version_ends_a_transaction(
    broker: InProcessBroker, orders: Transacting, version: int, commit: bool
) -> None:
    versions = BUMPING if version == 5 else Versions(produce=3 + version, add=min(version, 3), end=version)
    me = orders.started()
    after = orders.transact(me, [b"a", b"b"], versions, commit=commit)
    assert after == (Me(me.id, 1) if version == 5 else me)
    assert committed(broker) == ([b"a", b"b"] if commit else [])
    assert orders.state() == ("CompleteCommit" if commit else "CompleteAbort")
    # A late repetition is answered as the first.
    assert orders.end(me, commit=commit, version=version) == (0, after)
    wrong = orders.end(me, commit=not commit, version=version)
    assert wrong.code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", range(6))
def test_who_may_not_end_a_transaction_is_told_why(orders: Transacting, version: int) -> None:
    me = orders.started()
    assert orders.end(me, version=version).code == ErrorCode.INVALID_TXN_STATE
    assert orders.add(me, ("t", 0)) == [0]
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert orders.end(Me(me.id, 5), version=version).code == fenced
    assert orders.end(Me(77, 0), version=version).code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert Transacting(orders.broker, "none").end(me, version=version).code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert Transacting(orders.broker, "").end(me, version=version).code == ErrorCode.INVALID_REQUEST
    assert orders.state() == "Ongoing"


def test_version_2_may_abort_what_never_wrote(orders: Transacting) -> None:
    me = orders.started()
    assert orders.end(me, commit=False, version=5) == (0, Me(me.id, 1))
    assert orders.state() == "CompleteAbort"
    assert orders.end(me, commit=False, version=3).code == ErrorCode.PRODUCER_FENCED


# Produce, against the real coordinator


@pytest.mark.parametrize(("version", "code"), [(10, 48), (11, ErrorCode.TRANSACTION_ABORTABLE)])
def test_what_was_not_added_is_not_written(
    broker: InProcessBroker, orders: Transacting, version: int, code: int
) -> None:
    me = orders.started()
    assert orders.produce(me, [b"a"], version=version) == code
    assert orders.add(me, ("t", 1)) == [0]
    assert orders.produce(me, [b"a"], version=version) == code
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0


@pytest.mark.parametrize("versions", [CLASSIC, BUMPING])
def test_a_zombie_writes_nothing(broker: InProcessBroker, orders: Transacting, versions: Versions) -> None:
    zombie = orders.started(versions.init)
    heir = orders.started(versions.init)
    assert orders.produce(zombie, [b"no"], version=versions.produce) == ErrorCode.INVALID_PRODUCER_EPOCH
    orders.transact(heir, [b"a"], versions)
    assert orders.produce(zombie, [b"no"], version=versions.produce) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed(broker) == [b"a"]


def test_a_write_that_comes_after_the_end_is_refused(broker: InProcessBroker, orders: Transacting) -> None:
    me = orders.started()
    orders.transact(me, [b"a"])
    assert orders.produce(me, [b"late"], sequence=1) == ErrorCode.TRANSACTION_ABORTABLE
    me = orders.started(5)
    orders.transact(me, [b"b"], BUMPING)
    assert orders.produce(me, [b"late"], sequence=1, version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed(broker) == [b"a", b"b"]
    partition = broker.parts.partitions.get("t", 0)
    assert partition.last_stable_offset == partition.log.log_end_offset


# DescribeTransactions and ListTransactions


def test_a_transaction_is_described(broker: InProcessBroker, orders: Transacting) -> None:
    me = orders.started()
    began_ms = broker.parts.clocks.now_ms()
    assert orders.add(me, ("t", 1), ("t", 0)) == [0, 0]
    told = orders.describe()
    assert (told.error_code, told.transactional_id, told.transaction_state) == (0, "orders", "Ongoing")
    assert (told.producer_id, told.producer_epoch, told.transaction_timeout.total_seconds()) == (*me, 60)
    assert told.transaction_start_time.timestamp() >= began_ms // 1000
    assert [(topic.topic, topic.partitions) for topic in told.topics] == [("t", (0, 1))]


@pytest.mark.parametrize(("name", "code"), [("none", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", 42)])
def test_an_unknown_id_is_not_described(broker: InProcessBroker, orders: Transacting, name: str, code: int) -> None:
    assert Transacting(broker, name).describe().error_code == code


@pytest.mark.parametrize("version", range(3))
def test_every_version_lists_transactions(broker: InProcessBroker, orders: Transacting, version: int) -> None:
    me = orders.started()
    other = Transacting(broker, "other").started()
    assert orders.add(me, ("t", 0)) == [0]

    def listed(**filters: Any) -> list[tuple[str, int, str]]:
        answer = broker.ask(LIST_TRANSACTIONS, version, **{"duration_filter": -1, **filters})
        assert answer.error_code == 0
        return sorted(
            (one.transactional_id, one.producer_id, one.transaction_state) for one in answer.transaction_states
        )

    open_one, idle = ("orders", me.id, "Ongoing"), ("other", other.id, "Empty")
    assert listed() == [open_one, idle]
    assert listed(state_filters=["Ongoing"]) == [open_one]
    assert listed(producer_id_filters=[other.id]) == [idle]
    assert listed(state_filters=["Ongoing"], producer_id_filters=[other.id]) == []
    if version >= 1:
        assert listed(state_filters=["Ongoing"], duration_filter=1_000_000) == []
    if version >= 2:
        assert listed(transactional_id_pattern="o.*s") == [open_one]
        answer = broker.ask(LIST_TRANSACTIONS, version, duration_filter=-1, transactional_id_pattern="(")
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    answer = broker.ask(LIST_TRANSACTIONS, version, duration_filter=-1, state_filters=["Sleeping"])
    assert (answer.unknown_state_filters, answer.transaction_states) == (("Sleeping",), ())
