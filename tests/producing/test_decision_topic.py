"""Which state of a query is found, while the log's leader changes and its high watermark lags behind."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lamina.errors import KafkaError, OffsetNotAvailable, OffsetOutOfRange
from lamina.peer.fetching import Fetched
from lamina.peer.listing import EARLIEST, ListedOffset
from lamina.producing.decision_topic import DecisionTopic
from lamina.records.batch import stamp
from lamina.records.record import Record, build_batch

FOREVER = 10_000


@dataclass
class LaggingLog:
    """A new leader shows what it has up to its high watermark, which reaches the end after some fetches."""

    batches: list[bytes]
    high_watermarks: list[int] = field(default_factory=list)
    """One after the other; then it is the end."""
    log_start: int = 0

    async def list_offset(self, topic: str, partition: int, timestamp_ms: int) -> ListedOffset:
        return ListedOffset(0 if timestamp_ms == EARLIEST else len(self.batches), -1, 0)

    async def fetch(self, topic: str, partition: int, offset: int, *, max_bytes: int) -> Fetched:
        high_watermark = self.high_watermarks.pop(0) if self.high_watermarks else len(self.batches)
        if offset < self.log_start:
            raise OffsetOutOfRange("before the log start")
        records = b"".join(self.batches[offset:high_watermark])
        return Fetched(memoryview(records), high_watermark, high_watermark, 0, ())


def log(states: Iterable[tuple[bytes, bytes]], **facts: Any) -> LaggingLog:
    """A record of each."""
    return LaggingLog([_batch(offset, *state) for offset, state in enumerate(states)], **facts)


def _batch(offset: int, key: bytes, value: bytes) -> bytes:
    batch = build_batch([Record(0, 1, key, value)])
    stamp(batch, 0, offset, 0)
    return bytes(batch)


def find(leader: LaggingLog) -> bytes | None:
    return asyncio.run(DecisionTopic(leader, "decisions").find("query"))  # type: ignore[arg-type]


def test_the_newest_state_of_a_query_is_found() -> None:
    assert find(log([(b"query", b"old"), (b"query", b"new"), (b"other", b"x")])) == b"new"
    assert find(log([(b"query", b"old"), *[(b"other", b"x")] * 5_000])) == b"old"
    assert find(log([(b"other", b"x")])) is None


@pytest.mark.parametrize("high_watermarks", [[0], [1], [0, 0, 1], [1, 1, 1]])
def test_a_new_leader_whose_high_watermark_lags_is_waited_for(high_watermarks: list[int]) -> None:
    assert find(log([(b"query", b"old"), (b"query", b"new")], high_watermarks=high_watermarks)) == b"new"


@pytest.mark.parametrize(
    ("facts", "error"),
    [({"high_watermarks": [1] * FOREVER}, OffsetNotAvailable), ({"log_start": 1}, OffsetOutOfRange)],
)
def test_an_older_state_is_not_believed_where_a_newer_one_may_be(facts: Any, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        find(log([(b"query", b"old"), (b"query", b"new")], **facts))
