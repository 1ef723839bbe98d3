"""A partition's next state: made by hand, and as if by ``replace``."""

from dataclasses import fields, replace

from lamina.image.topic import Partition

STATE = Partition((1, 2, 3), 1, 7, (1, 2), made_on=(1, 3), partition_epoch=9, is_recovering=True)


def test_every_fact_is_another_than_its_default() -> None:
    assert all(getattr(STATE, field.name) != field.default for field in fields(Partition))


def test_a_new_leader_changes_nothing_else() -> None:
    assert STATE.led_by(2, (2,)) == replace(STATE, leader=2, leader_epoch=8, isr=(2,))


def test_a_partition_epoch_changes_nothing_else() -> None:
    assert STATE.with_partition_epoch(10) == replace(STATE, partition_epoch=10)
