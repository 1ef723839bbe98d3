"""Offsets of partitions, from leaders of which some do not answer."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from lamina.cli.outcome import Attempts
from lamina.cli.topics.lookup import EARLIEST, LATEST
from lamina.cli.topics.partition_offsets import PartitionOffsets

SILENCE = -1001


class FakeCluster:
    """``led`` is who leads the partitions of "t", by the metadata of now; ``answers`` is what each broker answers."""

    def __init__(self, led: Mapping[int, int], answers: Mapping[int, int | KafkaError]) -> None:
        self.led = dict(led)
        self.answers = dict(answers)
        self.asked: list[tuple[int, list[int]]] = []
        self.topics = [self.describe()]
        self.attempts = Attempts(self)  # type: ignore[arg-type]

    def describe(self) -> Any:
        return SimpleNamespace(
            name="t",
            partitions=[
                SimpleNamespace(id=number, leader=SimpleNamespace(id=leader, host="h", port=9000 + leader))
                for number, leader in self.led.items()
            ],
        )

    def admin(self) -> "FakeCluster":
        return self

    def list_topics(self, timeout: float) -> Any:
        assert timeout < 30
        partitions = {number: SimpleNamespace(id=number, leader=leader) for number, leader in self.led.items()}
        return SimpleNamespace(
            brokers={id_: SimpleNamespace(host="h", port=9000 + id_) for id_ in (1, 2, 3)},
            topics={"t": SimpleNamespace(partitions=partitions)},
        )

    def list_offsets(self, asked: Mapping[Any, Any], request_timeout: float) -> Mapping[Any, "Future[Any]"]:
        assert request_timeout < 30
        numbers = sorted(one.partition for one in asked)
        (leader,) = {self.topics[0].partitions[number].leader.id for number in numbers} & self.answers.keys() or {0}
        if self.elected:
            leader = self.elected
        self.asked.append((leader, numbers))
        futures: dict[Any, Future[Any]] = {}
        for one in asked:
            answer = self.answers[leader]
            futures[one] = Future()
            if isinstance(answer, KafkaError):
                futures[one].set_exception(KafkaException(answer))
            else:
                futures[one].set_result(SimpleNamespace(offset=answer, timestamp=-1))
        return futures

    elected = 0
    """Who answers instead of whoever was described as the leader."""

    def await_brokers(self, asked: Sequence[tuple[int, "Future[Any]"]]) -> None:
        """All have answered."""


def offsets(found: Mapping[tuple[str, int], Any]) -> dict[int, int]:
    return {number: one.offset for (_, number), one in found.items()}


def test_a_leader_that_does_not_answer_leaves_out_its_partitions_and_is_named_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = FakeCluster({0: 3, 1: 1, 2: 3}, {1: 7, 3: SILENCE})
    lookup = PartitionOffsets(cluster, cluster.attempts)  # type: ignore[arg-type]
    assert offsets(lookup.find(cluster.topics, EARLIEST)) == {1: 7}
    assert offsets(lookup.find(cluster.topics, LATEST)) == {1: 7}
    assert cluster.asked == [(3, [0, 2]), (1, [1]), (1, [1])], "a silent leader is asked once"
    assert lookup.silent_brokers == {3}
    assert capsys.readouterr().err == ""
    lookup.report()
    assert capsys.readouterr().err == (
        "lamina: t-0, t-2: their leader, broker 3 at h:9003, does not answer; "
        "another is elected when its session ends, if one is in sync\n"
    )
    assert cluster.attempts.status == 1


@pytest.mark.parametrize(
    "error", [KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.FENCED_LEADER_EPOCH, SILENCE]
)
def test_whoever_was_elected_meanwhile_is_asked_in_its_place(error: int, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster({0: 3}, {1: 7, 3: error if error == SILENCE else KafkaError(error)})
    lookup = PartitionOffsets(cluster, cluster.attempts)  # type: ignore[arg-type]
    cluster.led[0] = 1

    def elect(asked: Sequence[tuple[int, "Future[Any]"]]) -> None:
        cluster.elected = 1

    cluster.await_brokers = elect  # type: ignore[method-assign]
    assert offsets(lookup.find(cluster.topics, LATEST)) == {0: 7}
    lookup.report()
    assert (capsys.readouterr().err, cluster.attempts.status) == ("", 0)


def test_a_leader_that_is_being_elected_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster({0: 3, 1: 3}, {3: KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)})
    lookup = PartitionOffsets(cluster, cluster.attempts)  # type: ignore[arg-type]
    assert lookup.find(cluster.topics, LATEST) == {}
    lookup.report()
    assert capsys.readouterr().err == "lamina: t-0, t-1: a leader is being elected; try again in a moment\n"


def test_any_other_error_is_told_at_once_and_many_partitions_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster({0: 3}, {3: KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)})
    PartitionOffsets(cluster, cluster.attempts).find(cluster.topics, LATEST)  # type: ignore[arg-type]
    assert capsys.readouterr().err.startswith("lamina: t-0: topic authorization failed; ask for the permission")
    cluster = FakeCluster(dict.fromkeys(range(13), 3), {3: SILENCE})
    lookup = PartitionOffsets(cluster, cluster.attempts)  # type: ignore[arg-type]
    lookup.find(cluster.topics, LATEST)
    lookup.report()
    assert "t-8, t-9 and 3 more: their leader" in capsys.readouterr().err
