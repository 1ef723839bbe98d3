"""Incremental fetch sessions, KIP-227 (protocol.md §2.35)."""

import asyncio
from itertools import count
from typing import cast

import pytest

from lamina.broker.partitions.partition import Partition
from lamina.broker.requests import fetch_sessions
from lamina.broker.requests.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Fetching, FetchSessions
from lamina.broker.turns import Turns
from lamina.clocks import SYSTEM_CLOCKS
from lamina.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from lamina.wire.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from lamina.wire.fetch_response import PartitionFetched

EVICTION_MS = 120_000


def sessions(slots: int = 2) -> FetchSessions:
    ids = count(1)
    return FetchSessions(slots, EVICTION_MS, lambda: next(ids), lambda _, __: False)


def asking(
    *partitions: int, session_id: int = NO_SESSION, epoch: int = INITIAL_EPOCH, forget: tuple[int, ...] = ()
) -> FetchRequest:
    wanted = [FetchPartition(index, -1, 0, -1, -1, 1000) for index in partitions]
    topics = [FetchTopic("t", None, wanted)] if wanted else []
    forgotten = [ForgottenTopic("t", None, forget)] if forget else []
    return FetchRequest(-1, -1, 500, 1, 1000, 0, session_id, epoch, topics, forgotten, "")


def indexes(fetching: Fetching) -> list[int]:
    return [index for (_, index), _ in fetching.asked]


def answer(fetching: Fetching, **records: bytes) -> list[int]:
    """What the client is told of when these partitions have these records and all others nothing new."""
    answered = [
        (key, PartitionFetched(key[1], 0, 5, 5, 0, records.get(f"p{key[1]}", b""))) for key, _ in fetching.asked
    ]
    return [index for (_, index), _ in fetching.news(answered)]


def test_a_full_fetch_opens_a_session_and_is_answered_whole() -> None:
    fetching = sessions().begin(asking(0, 1), False, 0)
    assert fetching.session_id == 1
    assert answer(fetching) == [0, 1]


def test_an_incremental_fetch_reads_all_and_tells_only_news() -> None:
    cache = sessions()
    answer(cache.begin(asking(0, 1, 2), False, 0))
    again = cache.begin(asking(session_id=1, epoch=1), False, 0)
    assert indexes(again) == [0, 1, 2]
    assert answer(again, p1=b"records") == [1]


def test_partitions_with_records_go_to_the_end_of_the_order() -> None:
    cache = sessions()
    answer(cache.begin(asking(0, 1, 2), False, 0))
    answer(cache.begin(asking(session_id=1, epoch=1), False, 0), p0=b"records")
    assert indexes(cache.begin(asking(session_id=1, epoch=2), False, 0)) == [1, 2, 0]


def test_partitions_join_and_leave_a_session() -> None:
    cache = sessions()
    cache.begin(asking(0, 1), False, 0)
    changed = cache.begin(asking(2, session_id=1, epoch=1, forget=(0,)), False, 0)
    assert indexes(changed) == [1, 2]


def test_a_wrong_id_epoch_or_kind_of_topic_key_has_its_own_error() -> None:
    cache = sessions()
    cache.begin(asking(0), False, 0)
    with pytest.raises(FetchSessionIdNotFound):
        cache.begin(asking(session_id=9, epoch=1), False, 0)
    with pytest.raises(InvalidFetchSessionEpoch):
        cache.begin(asking(session_id=1, epoch=2), False, 0)
    with pytest.raises(FetchSessionTopicIdError):
        cache.begin(asking(session_id=1, epoch=1), True, 0)


def test_the_final_epoch_closes_a_session_and_opens_none() -> None:
    cache = sessions()
    cache.begin(asking(0), False, 0)
    assert cache.begin(asking(0, session_id=1, epoch=FINAL_EPOCH), False, 0).session_id == NO_SESSION
    assert len(cache) == 0


def test_when_all_slots_are_taken_only_an_old_or_smaller_session_gives_way() -> None:
    cache = sessions(slots=1)
    cache.begin(asking(0), False, 0)
    assert cache.begin(asking(0, 1), False, EVICTION_MS).session_id == NO_SESSION
    cache.begin(asking(session_id=1, epoch=1), False, EVICTION_MS)
    assert cache.begin(asking(0), False, EVICTION_MS + 1).session_id == NO_SESSION, "not smaller"
    assert cache.begin(asking(0, 1), False, EVICTION_MS + 1).session_id == 2, "smaller, and had its time"
    assert cache.begin(asking(0), False, 2 * EVICTION_MS + 2).session_id == 3, "unused for long"


def test_r3_a_follower_takes_the_place_of_any_consumer_and_none_takes_its() -> None:
    cache = sessions(slots=1)
    consumer = cache.begin(asking(0, 1, 2), False, 0)
    follower = cache.begin(asking(0), False, 1, is_privileged=True)
    assert consumer.session_id != NO_SESSION
    assert follower.session_id != NO_SESSION
    with pytest.raises(FetchSessionIdNotFound):
        cache.begin(asking(session_id=consumer.session_id, epoch=1), False, 2)
    assert cache.begin(asking(0, 1, 2), False, EVICTION_MS + 1).session_id == NO_SESSION
    assert cache.begin(asking(0), False, 2, is_privileged=True).session_id == NO_SESSION, "another one is no less"


def following(*partitions: int, broker_epoch: int = 7) -> FetchRequest:
    return asking(*partitions)._replace(replica_id=2, replica_epoch=broker_epoch)


class ParkingPlace:
    """Stands for a partition: who is parked at it."""

    def __init__(self) -> None:
        self.parked: list[object] = []

    def park(self, parked: object, *, is_replica: bool) -> None:
        assert is_replica
        self.parked.append(parked)

    def unpark(self, parked: object) -> None:
        self.parked.remove(parked)


def look(fetching: Fetching, place: ParkingPlace) -> None:
    assert fetching.feed is not None
    for key, _ in fetching.asked:
        fetching.feed.looked_at(key, cast(Partition, place))


def test_r2_a_fetcher_has_one_session_and_leaves_no_other_parked() -> None:
    """It fetches on one connection. A session whose first answer was lost is unknown to it: it never closes it."""
    cache, place = sessions(slots=100), ParkingPlace()
    for number, client_id in enumerate(["broker-2-fetcher-0", "broker-2-fetcher-1", "broker-2-fetcher-0"]):
        look(cache.begin(following(0), True, number, is_privileged=True, client_id=client_id), place)
    assert len(cache) == len(place.parked) == 2


def test_sessions_that_followers_have_left_go_when_one_of_them_opens_another() -> None:
    cache, place = sessions(slots=100), ParkingPlace()
    look(cache.begin(following(0), True, 0, is_privileged=True, client_id="broker-2-fetcher-0"), place)
    cache.begin(asking(0), True, 0)
    look(cache.begin(following(0), True, EVICTION_MS, is_privileged=True, client_id="broker-2-fetcher-1"), place)
    assert len(cache) == 3
    look(cache.begin(following(0), True, EVICTION_MS + 1, is_privileged=True, client_id="broker-2-fetcher-2"), place)
    assert len(cache) == 3, "a consumer's is parked nowhere, and waits until its slot is needed"
    assert len(place.parked) == 2


def test_a_session_that_was_dropped_while_its_partitions_were_gathered_parks_at_none() -> None:
    cache, place = sessions(), ParkingPlace()
    many = cache.begin(following(*range(300)), True, 0, is_privileged=True)
    cache.begin(following(0, broker_epoch=8), True, 1, is_privileged=True)
    asyncio.run(many.gather_in_turns(Turns(SYSTEM_CLOCKS)))
    assert len(many.asked) == 300
    look(many, place)
    assert not place.parked


def test_a_consumer_that_is_sent_elsewhere_is_told_so() -> None:
    cache = sessions()
    answer(cache.begin(asking(0), False, 0))
    again = cache.begin(asking(session_id=1, epoch=1), False, 0)
    (key, _) = again.asked[0]
    assert again.news([(key, PartitionFetched(0, 0, 5, 5, 0, preferred_read_replica=2))])


def test_what_is_remembered_of_a_client_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 3)
    cache = sessions()
    assert cache.begin(asking(0, 1, 2, 3), False, 0).session_id == NO_SESSION
    assert cache.begin(asking(0, 1, 2), False, 0).session_id == 1
    with pytest.raises(FetchSessionIdNotFound):
        cache.begin(asking(3, session_id=1, epoch=1), False, 0)
    assert len(cache) == 0
