"""Incremental fetch sessions, KIP-227 (protocol.md §2.35)."""

from itertools import count

import pytest

from lamina.broker.requests import fetch_sessions
from lamina.broker.requests.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Fetching, FetchSessions
from lamina.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from lamina.wire.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from lamina.wire.fetch_response import PartitionFetched

EVICTION_MS = 120_000


def sessions(slots: int = 2) -> FetchSessions:
    ids = count(1)
    return FetchSessions(slots, EVICTION_MS, lambda: next(ids))


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
