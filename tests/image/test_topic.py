"""A partition's next state: made by hand, and as if by ``replace``."""

from dataclasses import fields, replace

from lamina.image.topic import Partition

STATE = Partition(
    (1, 2, 3), 1, 7, (1, 2), made_on=(1, 3), partition_epoch=9, is_recovering=True, adding=(1,), removing=(3,)
)


def test_every_fact_is_another_than_its_default() -> None:
    assert all(getattr(STATE, field.name) != field.default for field in fields(Partition))


def test_a_new_leader_changes_nothing_else() -> None:
    assert STATE.led_by(2, (2,)) == replace(STATE, leader=2, leader_epoch=8, isr=(2,))


def test_a_partition_epoch_changes_nothing_else() -> None:
    assert STATE.with_partition_epoch(10) == replace(STATE, partition_epoch=10)


def test_what_is_added_was_not_there_before_and_what_is_removed_will_not_be_r51() -> None:
    assert (STATE.origin, STATE.target) == ((2, 3), (1, 2))
    assert STATE.is_reassigning
    assert replace(STATE, adding=()).is_reassigning


def test_without_a_reassignment_the_replicas_are_those_before_and_after() -> None:
    settled = replace(STATE, adding=(), removing=())
    assert not settled.is_reassigning
    assert settled.origin == settled.target == settled.replicas
