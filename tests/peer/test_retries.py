"""Which errors are worth another attempt, and when it comes."""

import pytest

from lamina.errors import (
    CoordinatorLoadInProgress,
    KafkaError,
    MalformedResponse,
    MessageTooLarge,
    NetworkError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    RequestTimedOut,
    UnsupportedVersion,
)
from lamina.peer.retries import Backoff, is_retriable


@pytest.mark.parametrize("error", [NotLeaderOrFollower, NetworkError, RequestTimedOut, CoordinatorLoadInProgress])
def test_what_passes_by_itself_is_retried(error: type[KafkaError]) -> None:
    assert is_retriable(error("it happens"))


@pytest.mark.parametrize("error", [OffsetOutOfRange, MessageTooLarge, UnsupportedVersion, MalformedResponse])
def test_what_stays_is_reported(error: type[KafkaError]) -> None:
    assert not is_retriable(error("it stays"))


def test_waiting_doubles_up_to_its_limit() -> None:
    backoff = Backoff(100, 1000, lambda: 0.5)
    assert [backoff.wait_ms(attempt) for attempt in (0, 1, 2, 3, 4, 10_000)] == [100, 200, 400, 800, 1000, 1000]


def test_jitter_is_a_fifth_either_way() -> None:
    assert Backoff(100, 1000, lambda: 0.0).wait_ms(0) == 80
    assert Backoff(100, 1000, lambda: 0.999).wait_ms(0) == pytest.approx(120, abs=0.1)
