"""Changes of the image as lines: whoever has the image before gets the image after."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from lamina.broker.metadata.change_messages import ChangeMessageError, encode_changes, patched
from lamina.image.changes import create_topic, set_partitions
from lamina.image.diff import diff
from lamina.image.image import Broker, Image
from tests.image.steps import CLUSTER_ID, Step, broker, cluster_walks, topic_id, walk


@given(cluster_walks)
def test_each_line_leads_from_one_image_to_the_next(steps: list[Step]) -> None:
    followed = image = Image(CLUSTER_ID)
    for after in walk(steps):
        followed = patched(followed, encode_changes(diff(image, after)))
        assert followed == after
        image = after


@given(cluster_walks)
def test_the_whole_image_is_what_differs_from_nothing(steps: list[Step]) -> None:
    *_, image = [Image(CLUSTER_ID), *walk(steps)]
    nothing = Image(CLUSTER_ID)
    assert patched(nothing, encode_changes(diff(nothing, image))) == image


def test_what_a_cluster_adds_travels_too() -> None:
    old = Image(CLUSTER_ID)
    draining: Broker = replace(
        broker(1), epoch=7, is_draining=True, offline=frozenset({("a", 0)}), features={"lamina.version": range(1, 3)}
    )
    new = replace(old, brokers={1: draining}, controller_id=1, controller_epoch=3, deletions={bytes(16): (2, 3)})
    assert patched(old, encode_changes(diff(old, new))) == new
    assert patched(new, encode_changes(diff(new, old))) == old


def test_a_line_of_a_controller_that_knows_no_reassignments_is_understood() -> None:
    """And where nothing is reassigned, a line is what such a controller writes."""
    old = Image(CLUSTER_ID)
    new = create_topic(old, "t", topic_id(1), [(1, 2)])
    line = encode_changes(diff(old, new))
    assert json.loads(line)["created"][0][3] == [[[1, 2], 1, 0, [1, 2], [], 0, False]]
    assert patched(old, line) == new


def test_a_reassignment_comes_behind_what_older_brokers_read() -> None:
    old = create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(1, 2)])
    begun = replace(old.topics["t"].partitions[0], replicas=(3, 2, 1), adding=(3,), removing=(1,))
    line = encode_changes(diff(old, set_partitions(old, {("t", 0): begun})))
    (told,) = json.loads(line)["partitions"]
    assert told == ["t", 0, [[3, 2, 1], 1, 0, [1, 2], [], 0, False, [3], [1]]]


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b'{"deleted":["a"]}', b'{"partitions":[["a",0,[]]]}', b'{"brokers":[[1,[[]]]]}', b'{"created":[1]}'],
)
def test_a_line_that_does_not_fit_is_refused(line: bytes) -> None:
    with pytest.raises(ChangeMessageError, match="cannot be read"):
        patched(Image(CLUSTER_ID), line)
