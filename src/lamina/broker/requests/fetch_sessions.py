"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changed.

Owns which partitions a session holds, in which order they are answered, and when a session has to make room
for another. Must not know logs: what was answered is told by the fetch handler.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from lamina.broker.turns import Turns
from lamina.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from lamina.wire.fetch_request import FetchPartition, FetchRequest
from lamina.wire.fetch_response import PartitionFetched

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1
MAX_PARTITIONS = 20_000
"""A fetch of more is answered without a session: what is remembered of a client stays bounded."""
PARTITIONS_AT_A_TIME = 256
"""A fetch of more is worked on in turns of the loop: to look at one takes about ten microseconds."""

TopicKey = tuple[str | None, UUID | None]
PartitionKey = tuple[TopicKey, int]


@dataclass(slots=True)
class SessionPartition:
    """What the client asked of a partition, and what it was last told."""

    asked: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    had_error: bool = False

    def is_news(self, fetched: PartitionFetched) -> bool:
        """Whether an answer has to go out, and remember that it does."""
        news = bool(
            fetched.records
            or fetched.error_code
            or self.had_error
            or fetched.diverging_epoch is not None
            or fetched.high_watermark != self.high_watermark
            or fetched.log_start_offset != self.log_start_offset
        )
        self.high_watermark = fetched.high_watermark
        self.log_start_offset = fetched.log_start_offset
        self.had_error = fetched.error_code != 0
        return news


@dataclass(slots=True)
class Session:
    id: int
    uses_topic_ids: bool
    created_ms: int
    last_used_ms: int
    epoch: int = 1
    """The epoch that the next request has to carry."""
    partitions: OrderedDict[PartitionKey, SessionPartition] = field(default_factory=OrderedDict)


@dataclass(slots=True)
class Fetching:
    """One fetch: the partitions to read in order, and how its answer is cut down to what is news."""

    session_id: int
    asked: list[tuple[PartitionKey, FetchPartition]]
    session: Session | None = None
    is_incremental: bool = False

    def news(
        self, answered: list[tuple[PartitionKey, PartitionFetched]]
    ) -> list[tuple[PartitionKey, PartitionFetched]]:
        """What the client has to be told. Partitions with records go to the end of the order: others come first."""
        if self.session is None:
            return answered
        session = self.session
        return [(key, fetched) for key, fetched in answered if self._is_news(session, key, fetched)]

    async def news_in_turns(
        self, answered: list[tuple[PartitionKey, PartitionFetched]], turns: Turns
    ) -> list[tuple[PartitionKey, PartitionFetched]]:
        """As above, for many partitions."""
        if self.session is None:
            return answered
        news = []
        for key, fetched in answered:
            if self._is_news(self.session, key, fetched):
                news.append((key, fetched))
            await turns.step()
        return news

    def _is_news(self, session: Session, key: PartitionKey, fetched: PartitionFetched) -> bool:
        held = session.partitions.get(key)
        if held is None or not (held.is_news(fetched) or not self.is_incremental):
            return False
        if fetched.records:
            session.partitions.move_to_end(key)
        return True

    async def remember_in_turns(self, turns: Turns) -> None:
        """Put the partitions of a new session into it, if they were too many for one turn."""
        if self.session is None or self.session.partitions:
            return
        for key, asked in self.asked:
            self.session.partitions[key] = SessionPartition(asked)
            await turns.step()


class FetchSessions:
    def __init__(self, slots: int, eviction_ms: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._new_id = new_id
        self._sessions: dict[int, Session] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many are held, in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> Fetching:
        """What this request wants to read; raises the session's error.

        A new session of more than ``PARTITIONS_AT_A_TIME`` is empty until :meth:`Fetching.remember_in_turns`.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            asked = list(_asked(request))
            if request.session_epoch == FINAL_EPOCH or not asked:
                return Fetching(NO_SESSION, asked)
            session = self._create(asked, uses_topic_ids, now_ms)
            return Fetching(session.id if session else NO_SESSION, asked, session)
        return self._continue(request, uses_topic_ids, now_ms)

    def _continue(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> Fetching:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"there is no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session.id} expects epoch {session.epoch}, {request.session_epoch} came"
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError(f"fetch session {session.id} changed between topic names and topic ids")
        for key, asked in _asked(request):
            held = session.partitions.get(key)
            if held is None:
                session.partitions[key] = SessionPartition(asked)
            else:
                held.asked = asked
        for forgotten in request.forgotten_topics:
            for index in forgotten.partitions:
                session.partitions.pop(((forgotten.name, forgotten.topic_id), index), None)
        if len(session.partitions) > MAX_PARTITIONS:
            del self._sessions[session.id]
            raise FetchSessionIdNotFound(f"fetch session {session.id} grew over {MAX_PARTITIONS} partitions")
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        session.last_used_ms = now_ms
        wanted = [(key, held.asked) for key, held in session.partitions.items()]
        return Fetching(session.id, wanted, session, is_incremental=True)

    def _create(
        self, asked: list[tuple[PartitionKey, FetchPartition]], uses_topic_ids: bool, now_ms: int
    ) -> Session | None:
        """A new session, if there is room or one that may be evicted for it."""
        if len(asked) > MAX_PARTITIONS:
            return None
        if len(self._sessions) >= self._slots and not self._evict_for(len(asked), now_ms):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = Session(session_id, uses_topic_ids, now_ms, now_ms)
        if len(asked) <= PARTITIONS_AT_A_TIME:
            session.partitions.update((key, SessionPartition(partition)) for key, partition in asked)
        self._sessions[session_id] = session
        return session

    def _evict_for(self, size: int, now_ms: int) -> bool:
        """Evict a session that was not used for long, else a smaller one that has had its time."""
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            del self._sessions[oldest.id]
            self.evictions += 1
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if len(smallest.partitions) < size and now_ms - smallest.created_ms > self._eviction_ms:
            del self._sessions[smallest.id]
            self.evictions += 1
            return True
        return False


def _asked(request: FetchRequest) -> Iterable[tuple[PartitionKey, FetchPartition]]:
    for topic in request.topics:
        topic_key = (topic.name, topic.topic_id)
        for partition in topic.partitions:
            yield (topic_key, partition.partition_index), partition
