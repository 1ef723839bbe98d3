"""The order of segments."""

from lamina.log.files import Disk
from lamina.log.segment import Segment
from lamina.log.segment_list import SegmentList
from tests.log.building import SMALL, shape_of


def of(*bases: int) -> SegmentList:
    return SegmentList(Segment(Disk(), "/nowhere", base, shape_of(SMALL)) for base in bases)


def bases(segments: list[Segment] | SegmentList) -> list[int]:
    return [segment.base_offset for segment in segments]


def test_they_are_kept_in_offset_order_and_the_last_is_active() -> None:
    segments = of(20, 0, 10)
    assert bases(segments) == [0, 10, 20]
    assert (segments.first.base_offset, segments.active.base_offset, len(segments)) == (0, 20, 3)


def test_an_offset_falls_into_the_last_segment_that_begins_at_or_below_it() -> None:
    segments = of(5, 10, 20)
    assert [segments.number_of(offset) for offset in (0, 5, 9, 10, 19, 20, 99)] == [0, 0, 0, 1, 1, 2, 2]


def test_a_range_takes_in_every_segment_that_may_hold_some_of_it() -> None:
    segments = of(0, 10, 20)
    assert bases(segments.between(5, 11)) == [0, 10]
    assert bases(segments.between(10, 20)) == [10]
    assert bases(segments.between(25, 30)) == [20]
    assert bases(segments.between(0, 0)) == []


def test_one_with_the_same_base_is_replaced_and_removal_is_by_identity() -> None:
    segments = of(0, 10, 20)
    old = segments[1]
    new = Segment(Disk(), "/nowhere", 10, shape_of(SMALL))
    segments.add(new)
    assert (bases(segments), segments[1] is new) == ([0, 10, 20], True)
    segments.remove([old])
    assert bases(segments) == [0, 10, 20]
    segments.remove([new, segments.active])
    assert (bases(segments), segments.active.base_offset) == ([0], 0)
