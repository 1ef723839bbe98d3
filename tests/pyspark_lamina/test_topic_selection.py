"""Which partitions a query reads of those that there are, and where each begins."""

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from lamina.arrow.cluster import Topic
from lamina.arrow.errors import ReadError
from lamina.peer.listing import EARLIEST, LATEST
from pyspark_lamina.places import END, START, parse_places
from pyspark_lamina.topic_selection import Selection, parse_selection

TOPICS = {
    name: Topic(name, None, dict.fromkeys(range(partitions), 1), name.startswith("__"))
    for name, partitions in (("orders", 2), ("orders-new", 1), ("__offsets", 1))
}


def selection(includes_internal: bool = False, **given: str) -> Selection:
    return parse_selection(CaseInsensitiveDict(given), includes_internal=includes_internal)


def test_topics_are_named() -> None:
    found = selection(subscribe=" orders , __offsets,orders")
    assert found.names == ("orders", "__offsets")
    named = [TOPICS[name] for name in found.names]
    assert found.select(named) == [("__offsets", 0), ("orders", 0), ("orders", 1)]
    assert selection(subscribe="a,orders,b").missing(TOPICS) == ["topic 'a'", "topic 'b'"]


def test_a_pattern_is_of_the_whole_name_and_leaves_kafkas_own_topics_out() -> None:
    found = selection(subscribePattern="orders|.*offsets")
    assert found.names is None
    assert found.select(TOPICS.values()) == [("orders", 0), ("orders", 1)]
    assert found.missing({}) == []
    assert selection(True, subscribePattern="__.*").select(TOPICS.values()) == [("__offsets", 0)]


def test_partitions_are_assigned() -> None:
    found = selection(assign='{"orders":[1],"orders-new":[0,1],"gone":[0]}')
    assert found.names == ["gone", "orders", "orders-new"]
    assert found.select(TOPICS.values()) == [("orders", 1), ("orders-new", 0)]
    assert found.missing(TOPICS) == ["topic 'gone'", "partition 1 of topic 'orders-new'"]


def test_one_place_is_for_all_partitions_and_several_must_name_each() -> None:
    partitions = [("orders", 0), ("orders", 1)]
    assert parse_places({}, START, EARLIEST).positions(partitions) == dict.fromkeys(partitions, EARLIEST)
    given = {"endingOffsets": '{"orders":{"0":7,"1":-1}}'}
    places = parse_places(given, END, LATEST)
    assert places.positions(partitions) == {("orders", 0): 7, ("orders", 1): LATEST}
    with pytest.raises(ReadError, match=r"^endingOffsets must name every partition \(-2 is .*; it lacks orders-2$"):
        places.positions([*partitions, ("orders", 2)])
    with pytest.raises(ReadError, match=r"^endingOffsets names orders-1, which the query does not read$"):
        places.positions(partitions[:1])
