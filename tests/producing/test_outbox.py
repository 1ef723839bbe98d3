"""Batches of a partition are acknowledged once each and in order, whatever comes back when."""

import random

import pytest

from lamina.errors import (
    DuplicateSequence,
    KafkaError,
    MessageTooLarge,
    NetworkError,
    NotLeaderOrFollower,
    OutOfOrderSequence,
    TopicAuthorizationFailed,
)
from lamina.producing.outbox import WINDOW, Outbox, Outgoing
from lamina.records.record import Record, build_batch

DUE = 100.0


def filled(count: int) -> tuple[Outbox, list[Outgoing]]:
    outbox, batches = Outbox(), [Outgoing(b"%d" % number, 1, DUE) for number in range(count)]
    for batch in batches:
        outbox.add(batch)
    return outbox, batches


def take_all(outbox: Outbox) -> list[Outgoing]:
    taken = []
    while outbox.peek() is not None:
        taken.append(outbox.take())
    return taken


def test_one_goes_first_and_then_as_many_as_a_broker_remembers() -> None:
    outbox, batches = filled(9)
    assert take_all(outbox) == batches[:1]
    outbox.acknowledged(batches[0])
    assert take_all(outbox) == batches[1 : 1 + WINDOW]


def test_those_that_failed_go_again_in_order_when_all_have_come_back() -> None:
    outbox, batches = filled(5)
    outbox.acknowledged(take_all(outbox)[0])
    first, second, third, _ = take_all(outbox)
    outbox.failed(second, NetworkError("gone"), 0.0)
    assert take_all(outbox) == []
    outbox.acknowledged(first)
    outbox.failed(third, OutOfOrderSequence("gap"), 0.0)
    assert take_all(outbox) == []
    outbox.failed(batches[4], OutOfOrderSequence("gap"), 0.0)
    assert outbox.attempt == 1
    assert take_all(outbox) == batches[2:]


def test_what_is_there_already_is_acknowledged() -> None:
    outbox, _ = filled(1)
    (batch,) = take_all(outbox)
    assert outbox.failed(batch, DuplicateSequence("there"), 0.0)
    assert outbox.is_empty


@pytest.mark.parametrize("error", [TopicAuthorizationFailed("no"), OutOfOrderSequence("gap")])
def test_what_does_not_pass_by_itself_is_raised(error: KafkaError) -> None:
    outbox, _ = filled(1)
    (batch,) = take_all(outbox)
    with pytest.raises(type(error)):
        outbox.failed(batch, error, 0.0)


def test_what_passes_by_itself_is_raised_when_its_time_is_over() -> None:
    outbox, _ = filled(1)
    (batch,) = take_all(outbox)
    with pytest.raises(NotLeaderOrFollower):
        outbox.failed(batch, NotLeaderOrFollower("moved"), DUE)


def test_what_is_too_large_goes_in_parts_unless_it_may_be_there_as_a_whole() -> None:
    data = build_batch([Record(offset, 0, None, b"x") for offset in range(5)])
    batch, outbox = Outgoing(data, 5, DUE), Outbox()
    outbox.add(batch)
    outbox.take()
    outbox.failed(batch, NetworkError("no response"), 0.0)
    assert outbox.split(limit_bytes=10) == 0
    assert outbox.take() is batch
    outbox.failed(batch, MessageTooLarge("so it is not there"), 0.0)
    grown = outbox.split(limit_bytes=len(data))
    parts = [outbox.take()]
    outbox.acknowledged(parts[0])
    parts += take_all(outbox)
    assert [(one.records, one.due) for one in parts] == [(2, DUE), (3, DUE)]
    assert sum(len(one.data) for one in parts) == len(data) + grown


class Log:
    """A partition that knows sequences as brokers do; answers may be lost, in which case all behind are lost too."""

    def __init__(self) -> None:
        self.appended: list[bytes] = []

    def append(self, batch: Outgoing) -> KafkaError | None:
        number = int(bytes(batch.data))
        if number < len(self.appended):
            return DuplicateSequence("there") if number >= len(self.appended) - WINDOW else OutOfOrderSequence("old")
        if number > len(self.appended):
            return OutOfOrderSequence("gap")
        self.appended.append(bytes(batch.data))
        return None


@pytest.mark.parametrize("seed", range(200))
def test_a_log_gets_every_batch_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    outbox, batches = filled(30)
    log = Log()
    for _ in range(10_000):
        sent = take_all(outbox)
        if not sent and outbox.is_empty:
            break
        answers: list[tuple[Outgoing, KafkaError | None]] = []
        is_gone = False
        for batch in sent:
            if chance.random() < 0.2:
                is_gone = True
            if is_gone and chance.random() < 0.5:
                answers.append((batch, NetworkError("never arrived")))
                is_gone = True
                continue
            error = log.append(batch) if not (is_gone and chance.random() < 0.5) else NotLeaderOrFollower("moved")
            answers.append((batch, NetworkError("answer lost") if is_gone else error))
        for batch, answer in answers:
            if answer is None:
                outbox.acknowledged(batch)
            else:
                outbox.failed(batch, answer, 0.0)
    assert outbox.is_empty
    assert log.appended == [bytes(batch.data) for batch in batches]
