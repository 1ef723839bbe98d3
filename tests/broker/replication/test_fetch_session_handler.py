"""The follower's half of a fetch session: a partition is told once, and again when something of it has changed."""

from uuid import UUID

import pytest

from lamina.broker.replication.fetch_session_handler import FetchLimits, FetchSessionHandler, fetch_limits
from lamina.errors import ErrorCode, KafkaError, MalformedResponse
from lamina.settings.resolve import resolve_broker
from lamina.wire.fetch_request import FetchRequest
from lamina.wire.fetch_response import PartitionFetched, TopicFetched
from lamina.wire.fetched import FetchResponse

ONE, OTHER = UUID(int=1), UUID(int=2)
LIMITS = FetchLimits(500, 1, 10_000, 1000)


@pytest.fixture
def session() -> FetchSessionHandler:
    made = FetchSessionHandler(3, lambda: 42, LIMITS)
    for key in ((ONE, 0), (ONE, 1), (OTHER, 0)):
        made.want(key, leader_epoch=5, offset=10, last_epoch=4, log_start_offset=2)
    return made


def told(request: FetchRequest) -> set[tuple[UUID | None, int]]:
    return {(topic.topic_id, one.partition_index) for topic in request.topics for one in topic.partitions}


def forgotten(request: FetchRequest) -> set[tuple[UUID | None, int]]:
    return {(topic.topic_id, index) for topic in request.forgotten_topics for index in topic.partitions}


def answer(*keys: tuple[UUID, int], session_id: int = 9, error_code: int = 0) -> FetchResponse:
    topics = [TopicFetched(None, topic_id, [PartitionFetched(index, 0, 7)]) for topic_id, index in keys]
    return FetchResponse(0, error_code, session_id, topics, ())


def begun(session: FetchSessionHandler) -> FetchSessionHandler:
    session.next_request()
    session.received(answer((ONE, 0), (ONE, 1), (OTHER, 0)))
    return session


def test_r2_the_settings_limit_a_fetch() -> None:
    assert fetch_limits(resolve_broker()) == FetchLimits(500, 1, 10 * 1024 * 1024, 1024 * 1024)


def test_r1_the_first_request_is_full_and_says_who_asks(session: FetchSessionHandler) -> None:
    request = session.next_request()
    assert request[:8] == (3, 42, 500, 1, 10_000, 0, 0, 0)
    assert told(request) == {(ONE, 0), (ONE, 1), (OTHER, 0)}
    assert request.topics[0].partitions[0] == (0, 5, 10, 4, 2, 1000)


def test_later_requests_tell_what_has_changed_and_forget_what_has_gone(session: FetchSessionHandler) -> None:
    begun(session)
    session.want((ONE, 1), 5, 11, 4, 2)
    session.want((OTHER, 0), 5, 10, 4, 2)
    session.drop((ONE, 0))
    request = session.next_request()
    assert (request.session_id, request.session_epoch) == (9, 1)
    assert (told(request), forgotten(request)) == ({(ONE, 1)}, {(ONE, 0)})
    session.received(answer())
    request = session.next_request()
    assert (request.session_epoch, told(request), forgotten(request)) == (2, set(), set())


def test_what_left_and_came_back_between_two_requests_is_told_only_if_it_differs(session: FetchSessionHandler) -> None:
    begun(session)
    for key, offset in (((ONE, 0), 10), ((ONE, 1), 12)):
        session.drop(key)
        session.want(key, 5, offset, 4, 2)
    request = session.next_request()
    assert (told(request), forgotten(request)) == ({(ONE, 1)}, set())


def test_what_came_and_left_between_two_requests_is_not_mentioned(session: FetchSessionHandler) -> None:
    begun(session)
    session.want((OTHER, 8), 5, 0, -1, 0)
    session.drop((OTHER, 8))
    request = session.next_request()
    assert (told(request), forgotten(request)) == (set(), set())


def test_an_answer_comes_with_what_the_leader_knew(session: FetchSessionHandler) -> None:
    session.next_request()
    session.want((ONE, 0), 6, 99, 6, 2)
    (one,) = session.received(answer((ONE, 0)))
    assert (one.key, one.asked.current_leader_epoch, one.asked.fetch_offset) == ((ONE, 0), 5, 10)


@pytest.mark.parametrize(
    ("error_code", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 9),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 9),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 9),
    ],
)
def test_r3_after_an_error_of_the_session_the_next_request_is_full(
    session: FetchSessionHandler, error_code: ErrorCode, session_id: int
) -> None:
    begun(session).next_request()
    with pytest.raises(KafkaError) as raised:
        session.received(answer(error_code=error_code, session_id=0))
    assert raised.value.code == error_code
    request = session.next_request()
    assert (request.session_id, request.session_epoch, len(told(request))) == (session_id, 0, 3)


def test_after_no_answer_the_next_request_is_full_and_closes_the_session(session: FetchSessionHandler) -> None:
    begun(session)
    session.drop((ONE, 0))
    session.next_request()
    session.failed()
    request = session.next_request()
    assert (request.session_id, request.session_epoch) == (9, 0)
    assert (told(request), forgotten(request)) == ({(ONE, 1), (OTHER, 0)}, set())


def test_a_leader_without_room_for_sessions_gets_full_requests(session: FetchSessionHandler) -> None:
    for _ in range(2):
        request = session.next_request()
        assert (request.session_id, request.session_epoch, len(told(request))) == (0, 0, 3)
        session.received(answer(session_id=0))


def test_a_renewed_session_tells_everything_again(session: FetchSessionHandler) -> None:
    begun(session).renew()
    request = session.next_request()
    assert (request.session_id, request.session_epoch, len(told(request))) == (9, 0, 3)
    session.received(answer(session_id=10))
    assert session.next_request()[6:8] == (10, 1)


def test_a_session_that_is_renewed_during_an_answer_begins_anew_after_it(
    session: FetchSessionHandler,
) -> None:
    begun(session).next_request()
    session.renew()
    session.received(answer())
    request = session.next_request()
    assert (request.session_id, request.session_epoch, len(told(request))) == (9, 0, 3)


def test_epochs_begin_again_after_the_largest(session: FetchSessionHandler) -> None:
    begun(session)._epoch = 2**31 - 1
    assert session.next_request().session_epoch == 2**31 - 1
    session.received(answer())
    assert session.next_request().session_epoch == 1


def test_an_answer_about_something_else_is_refused(session: FetchSessionHandler) -> None:
    begun(session).next_request()
    with pytest.raises(MalformedResponse):
        session.received(answer((OTHER, 5)))
    assert session.next_request().session_epoch == 0
