"""What came with many partitions is not walked by every collection."""

import gc

import pytest

from lamina.broker.metadata.frozen_heap import PARTITIONS_AT_A_TIME, FrozenHeap
from lamina.image.changes import create_topic, set_leader_epochs
from lamina.image.diff import Changes, diff
from lamina.image.image import Image
from tests.image.steps import topic_id


def created(partitions: int) -> Changes:
    nothing = Image("cluster")
    return diff(nothing, create_topic(nothing, "t", topic_id(1), [(1,)] * partitions))


def test_many_partitions_are_frozen_however_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    heap = FrozenHeap()
    heap.image_changed(created(PARTITIONS_AT_A_TIME - 1))
    assert frozen == []
    image = create_topic(Image("cluster"), "t", topic_id(1), [(1,)])
    moved = diff(image, set_leader_epochs(image, {("t", 0): 9}))
    heap.image_changed(moved)
    assert frozen == [True]
    heap.image_changed(created(PARTITIONS_AT_A_TIME))
    assert frozen == [True, True]
