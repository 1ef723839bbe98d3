"""Producer state against a slow, obvious model; protocol.md §2.35, facts 57 and 59."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lamina.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    KafkaError,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from lamina.log.producer_states import Origin, ProducerStates, VerificationGuard
from lamina.log.snapshots import pack_snapshot, unpack_snapshot
from lamina.records.batch import MAX_SEQUENCE, NO_SEQUENCE, BatchHeader, read_header
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from tests.examples import examples


def data(
    producer_id: int, sequence: int, count: int = 1, epoch: int = 0, *, transactional: bool = False, timestamp: int = 0
) -> BatchHeader:
    batch = build_batch(
        [Record(offset, timestamp, None, None) for offset in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    return read_header(batch)


def marker(producer_id: int, epoch: int = 0) -> BatchHeader:
    batch = build_marker(
        ControlType.COMMIT, offset=0, timestamp_ms=0, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=0
    )
    return read_header(batch)


@dataclass
class ModelProducer:
    epoch: int
    written: list[tuple[list[int], int]] = field(default_factory=list)
    """Every batch of this epoch: the sequence of each record, and the first offset."""
    coordinator_epoch: int = -1
    current_txn_first_offset: int | None = None


class Model:
    """Says what may be written by looking at everything that was ever written."""

    def __init__(self) -> None:
        self.producers: dict[int, ModelProducer] = {}
        self.open: list[tuple[int, int]] = []
        self.ended: list[tuple[int, int]] = []

    def check(self, header: BatchHeader, sequences: list[int]) -> int | type[KafkaError] | None:
        """The first offset of the original, an error, or that it may be written."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch == producer.epoch:
            for written, first_offset in producer.written[-5:]:
                if written == sequences:
                    return first_offset
        if header.producer_epoch < producer.epoch:
            return InvalidProducerEpoch
        expected = 0
        if header.producer_epoch == producer.epoch and producer.written:
            last = producer.written[-1][0][-1]
            expected = 0 if last == MAX_SEQUENCE else last + 1
        if sequences[0] != expected:
            return OutOfOrderSequence
        if producer.current_txn_first_offset is not None and not header.is_transactional:
            return InvalidTransactionState
        return None

    def first_unstable_offset(self) -> int | None:
        return min((first for first, _ in [*self.open, *self.ended]), default=None)


class ProducersAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.states = ProducerStates()
        self.model = Model()
        self.offset = 0

    def next_sequence(self, producer_id: int, epoch: int) -> int:
        producer = self.model.producers.get(producer_id)
        if producer is None or producer.epoch != epoch or not producer.written:
            return 0
        last = producer.written[-1][0][-1]
        return 0 if last == MAX_SEQUENCE else last + 1

    @rule(
        producer_id=st.integers(1, 3),
        epoch=st.integers(0, 2),
        count=st.integers(1, 3),
        shift=st.sampled_from([0, 0, 0, 0, 0, -1, -2, -3, -7, 1, 5]),
        start=st.sampled_from([0, 0, 5, MAX_SEQUENCE - 3, MAX_SEQUENCE]),
        transactional=st.booleans(),
    )
    def write(self, producer_id: int, epoch: int, count: int, shift: int, start: int, transactional: bool) -> None:
        first = self.next_sequence(producer_id, epoch) + shift
        if producer_id not in self.model.producers:
            first = start
        first %= MAX_SEQUENCE + 1
        self.send(data(producer_id, first, count, epoch, transactional=transactional), count)

    @precondition(lambda self: any(producer.written for producer in self.model.producers.values()))
    @rule(choose=st.data(), back=st.integers(1, 7))
    def retry(self, choose: st.DataObject, back: int) -> None:
        """The same batch once more, as a client does that missed the answer."""
        ids = sorted(each for each, producer in self.model.producers.items() if producer.written)
        producer_id = choose.draw(st.sampled_from(ids))
        producer = self.model.producers[producer_id]
        sequences, _ = producer.written[-min(back, len(producer.written))]
        transactional = producer.current_txn_first_offset is not None
        header = data(producer_id, sequences[0], len(sequences), producer.epoch, transactional=transactional)
        self.send(header, len(sequences))

    def send(self, header: BatchHeader, count: int) -> None:
        sequences = [(header.base_sequence + number) % (MAX_SEQUENCE + 1) for number in range(count)]
        expected = self.model.check(header, sequences)
        if isinstance(expected, type):
            with pytest.raises(expected):
                self.states.check(header)
            return
        duplicate = self.states.check(header)
        assert (None if duplicate is None else duplicate.first_offset) == expected
        if duplicate is not None:
            return
        self.states.record_batch(header, self.offset)
        producer = self.model.producers.setdefault(header.producer_id, ModelProducer(header.producer_epoch))
        if producer.epoch != header.producer_epoch:
            producer.epoch, producer.written = header.producer_epoch, []
        producer.written.append((sequences, self.offset))
        if header.is_transactional and producer.current_txn_first_offset is None:
            producer.current_txn_first_offset = self.offset
            self.model.open.append((self.offset, header.producer_id))
        self.offset += count

    @rule(
        producer_id=st.integers(1, 3),
        epoch=st.integers(0, 2),
        coordinator_epoch=st.integers(0, 2),
        is_abort=st.booleans(),
        version=st.sampled_from([0, 1, 2]),
    )
    def end_transaction(
        self, producer_id: int, epoch: int, coordinator_epoch: int, is_abort: bool, version: int
    ) -> None:
        header = marker(producer_id, epoch)
        producer = self.model.producers.get(producer_id)
        is_late = (
            producer is not None
            and version == 2
            and epoch == producer.epoch
            and producer.current_txn_first_offset is not None
        )
        if producer is not None and (epoch < producer.epoch or is_late):
            with pytest.raises(InvalidProducerEpoch):
                self.states.check_marker(header, coordinator_epoch, version)
            return
        if producer is not None and coordinator_epoch < producer.coordinator_epoch:
            with pytest.raises(TransactionCoordinatorFenced):
                self.states.check_marker(header, coordinator_epoch, version)
            return
        self.states.check_marker(header, coordinator_epoch, version)
        aborted = self.states.record_marker(header, self.offset, coordinator_epoch, is_abort=is_abort)
        if producer is None:
            producer = self.model.producers[producer_id] = ModelProducer(epoch)
        if producer.epoch != epoch:
            producer.epoch, producer.written = epoch, []
        producer.coordinator_epoch = coordinator_epoch
        first, producer.current_txn_first_offset = producer.current_txn_first_offset, None
        if first is not None:
            self.model.open.remove((first, producer_id))
            self.model.ended.append((first, self.offset))
        last_stable_offset = min((each for each, _ in self.model.open), default=self.offset + 1)
        expected = (producer_id, first, self.offset, last_stable_offset) if is_abort and first is not None else None
        assert aborted == expected
        self.offset += 1

    @rule(back=st.integers(0, 10))
    def move_high_watermark(self, back: int) -> None:
        high_watermark = max(self.offset - back, 0)
        self.states.high_watermark_moved(high_watermark)
        self.model.ended = [each for each in self.model.ended if each[1] >= high_watermark]

    @rule()
    def restart_from_a_snapshot(self) -> None:
        """Only the last batch of each producer survives, and all markers are below the high watermark."""
        packed = pack_snapshot(self.states.producers.values())
        self.states = ProducerStates()
        for producer in reversed(unpack_snapshot(packed)):
            self.states.restore(producer)
        for model in self.model.producers.values():
            model.written = model.written[-1:]
        self.model.ended = []

    @invariant()
    def the_first_unstable_offset_is_the_models(self) -> None:
        assert self.states.first_unstable_offset() == self.model.first_unstable_offset()


TestProducersAgainstModel = ProducersAgainstModel.TestCase
TestProducersAgainstModel.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


def recorded(*headers: BatchHeader) -> ProducerStates:
    states = ProducerStates()
    offset = 0
    for header in headers:
        states.record_batch(header, offset)
        offset += header.last_offset_delta + 1
    return states


def test_a_sequence_wraps_from_2147483647_to_0() -> None:
    states = recorded(data(1, MAX_SEQUENCE - 1, 3))
    assert states.producers[1].last_sequence == 0
    assert states.check(data(1, 1)) is None
    duplicate = states.check(data(1, MAX_SEQUENCE - 1, 3))
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset) == (0, 2)


def test_the_sixth_last_batch_is_no_longer_known_as_a_duplicate() -> None:
    states = recorded(*(data(1, sequence) for sequence in range(6)))
    assert states.check(data(1, 1)) is not None
    with pytest.raises(OutOfOrderSequence):
        states.check(data(1, 0))


@pytest.mark.parametrize("sequence", [0, 1, 77, MAX_SEQUENCE])
def test_a_producer_without_state_is_accepted_at_any_sequence(sequence: int) -> None:
    assert ProducerStates().check(data(1, sequence)) is None


@pytest.mark.parametrize("sequence", [0, NO_SEQUENCE])
def test_a_coordinator_writes_for_a_producer_whatever_its_sequences(sequence: int) -> None:
    """Offsets committed in a transaction carry the producer's id and epoch; each batch has the same sequence."""
    states = recorded(data(1, sequence, 2, transactional=True))
    again = data(1, sequence, 2, transactional=True)
    assert states.check(again, Origin.COORDINATOR) is None
    states.record_batch(again, 2)
    producer = states.producers[1]
    assert (producer.last_data_offset, producer.current_txn_first_offset) == (3, 0)
    with pytest.raises(InvalidProducerEpoch):
        recorded(data(1, sequence, 1, 3)).check(data(1, sequence, 1, 2), Origin.COORDINATOR)
    with pytest.raises(InvalidTransactionState):
        states.check(data(1, sequence, 2), Origin.COORDINATOR)


def test_a_new_epoch_begins_at_0() -> None:
    states = recorded(data(1, 0, 3))
    with pytest.raises(OutOfOrderSequence):
        states.check(data(1, 3, epoch=1))
    assert states.check(data(1, 0, epoch=1)) is None
    states.record_marker(marker(1, epoch=1), 3, 0, is_abort=True)
    with pytest.raises(OutOfOrderSequence):
        states.check(data(1, 3, epoch=1))
    with pytest.raises(InvalidProducerEpoch):
        states.check(data(1, 3, epoch=0))


# Markers


def test_a_marker_without_an_open_transaction_is_no_error_and_leaves_no_aborted_transaction() -> None:
    states = ProducerStates()
    for version in (0, 2):
        states.check_marker(marker(1), 4, version)
        assert states.record_marker(marker(1), version, 4, is_abort=True) is None
    assert states.first_unstable_offset() is None
    with pytest.raises(TransactionCoordinatorFenced):
        states.check_marker(marker(1), 3)


def test_a_late_marker_of_version_2_does_not_end_the_next_transaction() -> None:
    """Its epoch is that in which the next transaction writes: a delayed marker must not tear that one."""
    states = recorded(data(1, 0, epoch=4, transactional=True))
    states.check_marker(marker(1, epoch=5), 0, 2)
    states.record_marker(marker(1, epoch=5), 1, 0, is_abort=False)
    states.check_marker(marker(1, epoch=5), 0, 2)  # the same once more
    states.record_batch(data(1, 0, epoch=5, transactional=True), 2)
    with pytest.raises(InvalidProducerEpoch):
        states.check_marker(marker(1, epoch=5), 0, 2)
    states.check_marker(marker(1, epoch=5), 0, 1)
    states.check_marker(marker(1, epoch=6), 0, 2)


# VerificationGuard


def verifying(*headers: BatchHeader) -> ProducerStates:
    states = recorded(*headers)
    states.verifies_transactions = True
    return states


def begin(
    states: ProducerStates, header: BatchHeader, now_ms: int = 0, *, begins_at_zero: bool = False
) -> VerificationGuard | None:
    return states.begin_verification(
        header.producer_id, header.producer_epoch, header.base_sequence, now_ms, begins_at_zero=begins_at_zero
    )


def test_a_transaction_begins_only_with_the_verification_that_was_made_for_it() -> None:
    states, first = verifying(), data(1, 0, transactional=True)
    verification = begin(states, first)
    assert verification is not None
    for shown in (None, VerificationGuard(0, 0, begins_at_zero=False, began_ms=0)):
        with pytest.raises(InvalidTransactionState):
            states.check(first, verification=shown)
    with pytest.raises(InvalidTransactionState):
        states.check(data(2, 0, transactional=True), Origin.COORDINATOR, verification)
    assert states.check(first, verification=verification) is None
    states.record_batch(first, 0)
    assert begin(states, data(1, 1, transactional=True)) is None
    assert states.check(data(1, 1, transactional=True)) is None


def test_a_marker_takes_the_verification_away_even_when_another_has_begun() -> None:
    states, first = verifying(), data(1, 0, transactional=True)
    stale = begin(states, first)
    states.record_marker(marker(1), 0, 0, is_abort=True)
    later = begin(states, first)
    assert later is not stale
    with pytest.raises(InvalidTransactionState):
        states.check(first, verification=stale)
    assert states.check(first, verification=later) is None


def test_a_batch_of_an_ended_transaction_is_refused_though_its_sequence_is_right() -> None:
    states = verifying(data(1, 0, transactional=True))
    states.record_marker(marker(1), 1, 0, is_abort=False)
    with pytest.raises(InvalidTransactionState):
        states.check(data(1, 1, transactional=True))


def test_the_open_transaction_of_an_older_epoch_verifies_nothing() -> None:
    states, bumped = verifying(data(1, 0, transactional=True)), data(1, 0, epoch=1, transactional=True)
    assert begin(states, bumped) is not None
    with pytest.raises(InvalidTransactionState):
        states.check(bumped)


def test_a_later_batch_waits_for_the_one_whose_verification_failed() -> None:
    states = verifying()
    verification = begin(states, data(1, 5, transactional=True))
    assert begin(states, data(1, 6, transactional=True)) is verification
    with pytest.raises(OutOfOrderSequence):
        states.check(data(1, 6, transactional=True), verification=verification)
    assert states.check(data(1, 5, transactional=True), verification=verification) is None
    assert begin(states, data(1, 2, epoch=1, transactional=True)) is verification
    with pytest.raises(OutOfOrderSequence):
        states.check(data(1, 3, epoch=1, transactional=True), verification=verification)


def test_under_version_2_a_producer_without_state_begins_at_0() -> None:
    states = verifying()
    verification = begin(states, data(1, 7, transactional=True), 0, begins_at_zero=True)
    with pytest.raises(OutOfOrderSequence):
        states.check(data(1, 7, transactional=True), verification=verification)
    begin(states, data(1, 0, transactional=True), 0, begins_at_zero=True)
    assert states.check(data(1, 0, transactional=True), verification=verification) is None


def test_a_verification_that_nobody_used_expires() -> None:
    states, first = verifying(), data(1, 0, transactional=True)
    verification = begin(states, first, 1000, begins_at_zero=False)
    states.expire(now_ms=1999, expiration_ms=1000)
    assert states.check(first, verification=verification) is None
    states.expire(now_ms=2000, expiration_ms=1000)
    with pytest.raises(InvalidTransactionState):
        states.check(first, verification=verification)


def test_checking_changes_nothing() -> None:
    states = recorded(data(1, 0, 2, transactional=True))
    before = pack_snapshot(states.producers.values())
    checks: list[Callable[[], object]] = [
        lambda: states.check(data(1, 2, transactional=True)),
        lambda: states.check(data(1, 0, epoch=1, transactional=True)),
        lambda: states.check(data(2, 0)),
        lambda: states.check_marker(marker(1, 5), 7),
    ]
    for check in checks:
        check()
    assert pack_snapshot(states.producers.values()) == before
    assert states.first_unstable_offset() == 0


def test_the_abort_of_one_transaction_names_the_oldest_other_open_one() -> None:
    states = recorded(data(1, 0, transactional=True), data(2, 0, transactional=True), data(3, 0, transactional=True))
    assert states.record_marker(marker(1), 3, 0, is_abort=True) == (1, 0, 3, 1)
    assert states.record_marker(marker(3), 4, 0, is_abort=True) == (3, 2, 4, 1)
    assert states.record_marker(marker(2), 5, 0, is_abort=True) == (2, 1, 5, 6)
    assert states.record_marker(marker(2), 6, 0, is_abort=True) is None


def test_an_ended_transaction_is_unstable_until_its_marker_is_below_the_high_watermark() -> None:
    states = recorded(data(1, 0, transactional=True))
    states.record_marker(marker(1), 1, 0, is_abort=False)
    states.high_watermark_moved(1)
    assert states.first_unstable_offset() == 0
    states.high_watermark_moved(2)
    assert states.first_unstable_offset() is None


def test_a_silent_producer_expires_unless_it_has_a_transaction_open() -> None:
    states = recorded(data(1, 0, timestamp=1000), data(2, 0, timestamp=1000, transactional=True))
    states.expire(now_ms=1999, expiration_ms=1000)
    assert sorted(states.producers) == [1, 2]
    states.expire(now_ms=2000, expiration_ms=1000)
    assert sorted(states.producers) == [2]


def test_clearing_forgets_transactions_too() -> None:
    states = recorded(data(1, 0, transactional=True))
    states.clear()
    assert (states.producers, states.first_unstable_offset()) == ({}, None)
