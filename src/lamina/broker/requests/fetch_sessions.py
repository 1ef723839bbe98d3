"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changed.

Owns which partitions a session holds, in which order they are answered, and when a session has to make room for
another. Of a follower's session only those partitions are looked at that have said that they changed. Must not know
logs: what was answered is told by the fetch handler.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from lamina.broker.requests.replica_feed import HoldsBack, PartitionKey, ReplicaFeed
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

Asked = tuple[PartitionKey, FetchPartition]
Answered = tuple[PartitionKey, PartitionFetched]


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
            or fetched.preferred_read_replica >= 0
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
    feed: ReplicaFeed | None
    """Of a follower's session."""
    created_ms: int
    last_used_ms: int
    epoch: int = 1
    """The epoch that the next request has to carry."""
    partitions: OrderedDict[PartitionKey, SessionPartition] = field(default_factory=OrderedDict)

    @property
    def is_privileged(self) -> bool:
        """Whether it is a follower's: such a one takes a consumer's place, and no consumer takes its (R3)."""
        return self.feed is not None

    def asked(self) -> list[Asked]:
        """What has to be looked at now: of a consumer's partitions all, of a follower's those that may have changed."""
        if self.feed is None:
            return [(key, held.asked) for key, held in self.partitions.items()]
        return [(key, self.partitions[key].asked) for key in self.feed.pending]

    def put(self, key: PartitionKey, asked: FetchPartition) -> None:
        held = self.partitions.get(key)
        if held is None:
            self.partitions[key] = SessionPartition(asked)
        else:
            held.asked = asked
        if self.feed is not None:
            self.feed.ask(key)

    def forget(self, key: PartitionKey) -> None:
        self.partitions.pop(key, None)
        if self.feed is not None:
            self.feed.forget(key)


@dataclass(slots=True)
class Fetching:
    """One fetch: the partitions to read in order, and how its answer is cut down to what is news."""

    session_id: int
    asked: list[Asked]
    session: Session | None = None
    is_incremental: bool = False
    more: Iterable[Asked] = ()
    """What else is asked for, if it is too much for one turn."""

    @property
    def feed(self) -> ReplicaFeed | None:
        return None if self.session is None else self.session.feed

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self.asked and (self.session is None or not self.session.partitions)

    def look_again(self) -> None:
        """Of a follower's partitions, others may have changed since the last look."""
        if self.session is not None and self.session.feed is not None:
            self.asked = self.session.asked()

    def news(self, answered: list[Answered]) -> list[Answered]:
        """What the client has to be told. Partitions with records go to the end of the order: others come first."""
        if self.session is None:
            return answered
        session = self.session
        return [(key, fetched) for key, fetched in answered if self._is_news(session, key, fetched)]

    async def news_in_turns(self, answered: list[Answered], turns: Turns) -> list[Answered]:
        """As above, for many partitions."""
        if self.session is None:
            return answered
        news = []
        for one in answered:
            key, fetched = one
            if self._is_news(self.session, key, fetched):
                news.append(one)
            await turns.step()
        return news

    def _is_news(self, session: Session, key: PartitionKey, fetched: PartitionFetched) -> bool:
        held = session.partitions.get(key)
        if held is None:
            return False
        is_news = held.is_news(fetched) or not self.is_incremental
        if session.feed is not None and not fetched.error_code and fetched.diverging_epoch is None:
            session.feed.told(key, held.asked.fetch_offset)
        if not is_news:
            return False
        if fetched.records:
            session.partitions.move_to_end(key)
        return True

    async def gather_in_turns(self, turns: Turns) -> None:
        """Take up all that is asked for, and put it into a new session, if it was too much for one turn."""
        if self.is_incremental:
            return
        first, self.asked = self.asked, []
        for one in chain(first, self.more):
            self.asked.append(one)
            if self.session is not None:
                key, asked = one
                self.session.put(key, asked)
            await turns.step()


class FetchSessions:
    def __init__(self, slots: int, eviction_ms: int, new_id: Callable[[], int], holds_back: HoldsBack) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._new_id = new_id
        self._holds_back = holds_back
        self._sessions: dict[int, Session] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many are held, in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(
        self,
        request: FetchRequest,
        uses_topic_ids: bool,
        now_ms: int,
        *,
        is_privileged: bool = False,
        client_id: str | None = None,
    ) -> Fetching:
        """What this request wants to read; raises the session's error.

        Of a request for more than ``PARTITIONS_AT_A_TIME`` only these and one more are ``asked``, and a new session is
        empty, until :meth:`Fetching.gather_in_turns`.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._drop(request.session_id)
            every = _asked(request)
            asked = list(islice(every, PARTITIONS_AT_A_TIME + 1))
            if request.session_epoch == FINAL_EPOCH or not asked:
                return Fetching(NO_SESSION, asked, more=every)
            feed = None
            if is_privileged:
                feed = ReplicaFeed(request.replica_id, request.replica_epoch, client_id, now_ms, self._holds_back)
            if len(asked) > PARTITIONS_AT_A_TIME:
                size = sum(len(topic.partitions) for topic in request.topics)
                session = self._create(size, uses_topic_ids, feed, now_ms)
            else:
                session = self._create(len(asked), uses_topic_ids, feed, now_ms)
                if session is not None:
                    for key, partition in asked:
                        session.put(key, partition)
            return Fetching(session.id if session else NO_SESSION, asked, session, more=every)
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
        if session.feed is not None:
            session.feed.arrived(request.replica_epoch, now_ms)
        for key, asked in _asked(request):
            session.put(key, asked)
        for forgotten in request.forgotten_topics:
            for index in forgotten.partitions:
                session.forget(((forgotten.name, forgotten.topic_id), index))
        if len(session.partitions) > MAX_PARTITIONS:
            self._drop(session.id)
            raise FetchSessionIdNotFound(f"fetch session {session.id} grew over {MAX_PARTITIONS} partitions")
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        session.last_used_ms = now_ms
        return Fetching(session.id, session.asked(), session, is_incremental=True)

    def throttled(self, fetching: Fetching) -> int:
        """The session to tell a client that gets nothing for now. It goes on with one that it had, and none begins."""
        if fetching.is_incremental:
            return fetching.session_id
        self._drop(fetching.session_id)
        return NO_SESSION

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None and session.feed is not None:
            session.feed.close()

    def _create(self, size: int, uses_topic_ids: bool, feed: ReplicaFeed | None, now_ms: int) -> Session | None:
        """A new session for so many partitions, if there is room or one that may be evicted for it."""
        if size > MAX_PARTITIONS:
            return None
        if feed is not None:
            self._drop_abandoned(feed, now_ms)
        if len(self._sessions) >= self._slots and not self._evict_for(size, feed is not None, now_ms):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = self._sessions[session_id] = Session(session_id, uses_topic_ids, feed, now_ms, now_ms)
        return session

    def _drop_abandoned(self, feed: ReplicaFeed, now_ms: int) -> None:
        """Drop the followers' sessions in whose place the new one comes, and those not used for long.

        They would stay parked at their partitions, which tell each of them of every append.
        """
        for session in list(self._sessions.values()):
            is_unused = now_ms - session.last_used_ms > self._eviction_ms
            if session.feed is not None and (is_unused or feed.replaces(session.feed)):
                self._drop(session.id)

    def _evict_for(self, size: int, is_privileged: bool, now_ms: int) -> bool:
        """Evict a session that was not used for long, else a lesser one that has had its time.

        A follower's session counts for more than any consumer's, and does not wait for a consumer's time.
        """
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            self._drop(oldest.id)
            self.evictions += 1
            return True
        least = min(self._sessions.values(), key=lambda session: (session.is_privileged, len(session.partitions)))
        is_lesser = (least.is_privileged, len(least.partitions)) < (is_privileged, size)
        has_had_its_time = now_ms - least.created_ms > self._eviction_ms
        if is_lesser and (has_had_its_time or (is_privileged and not least.is_privileged)):
            self._drop(least.id)
            self.evictions += 1
            return True
        return False


def _asked(request: FetchRequest) -> Iterator[Asked]:
    for topic in request.topics:
        topic_key = (topic.name, topic.topic_id)
        for partition in topic.partitions:
            yield (topic_key, partition.partition_index), partition
