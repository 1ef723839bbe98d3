"""One fetcher: copies some of the partitions that one other broker leads, with one request in flight.

Owns their place in its fetch session, and what an answer leads to: batches appended, watermarks taken over, a log
aligned beside the fetches of the others, a back-off. A short answer is taken, and the next request sent, in the turn of
the loop in which it comes: each acks=all produce waits for that. A large one is worked through in turns of the loop, so
an answer counts only while its partition is still followed in the same epoch and from the same offset (R31). Must not
know which partitions belong here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from lamina.broker.backoff import Backoff, RetryWait
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.partitions.follower import (
    Follower,
    FollowerState,
    Reaction,
    offset_of_straddling_batch,
    reaction_to,
)
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.replication.alignment import Alignment
from lamina.broker.replication.broker_links import AskBroker
from lamina.broker.replication.fetch_session_handler import FetchSessionHandler, PartitionKey
from lamina.broker.tasks import Tasks
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import CorruptMessage, KafkaError, error_from_code
from lamina.log.epochs import EpochStart
from lamina.peer.fetching import FetchCall
from lamina.records.batch import HEADER_BYTES, read_header
from lamina.records.replicated import checked_pieces
from lamina.wire.fetch_request import FetchPartition
from lamina.wire.fetch_response import PartitionFetched
from lamina.wire.fetched import FetchResponse

logger = logging.getLogger(__name__)

_FETCH_VERSIONS = range(17, 18)

_Aligning = Callable[[Partition, Follower], Awaitable[bool]]
"""Work on a follower's log; says whether it changed anything."""


@dataclass(frozen=True, slots=True, eq=False)
class _Followed:
    """A partition as long as it is followed under one epoch."""

    partition: Partition
    follower: Follower
    backoff: Backoff

    @property
    def key(self) -> PartitionKey:
        return self.partition.topic_id, self.partition.index

    @property
    def is_current(self) -> bool:
        return self.partition.follower is self.follower


class Fetcher:
    def __init__(
        self,
        leader_id: int,
        number: int,
        session: FetchSessionHandler,
        ask: AskBroker,
        alignment: Alignment,
        partitions: Partitions,
        throttles: ReplicationThrottles,
        counters: Counters,
        backoff_ms: int,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.leader_id = leader_id
        self.lane = f"fetcher-{number}"
        """The connection that it alone uses."""
        self._session = session
        self._ask = ask
        self._alignment = alignment
        self._partitions = partitions
        self._throttles = throttles
        self._counters = counters
        self._longest_backoff_seconds = backoff_ms / 1000
        self._backoff = RetryWait(self._longest_backoff_seconds)
        """Of the leader's broker; each partition has its own."""
        self._clocks = clocks
        self._loop = loop
        self._followed: dict[PartitionKey, _Followed] = {}
        self._aligning = Tasks(loop)
        self._flushing: dict[_Followed, None] = {}
        """What has to be on disk before the next request: one without it could keep it waiting as long as a poll."""
        self._full: dict[_Followed, None] = {}
        """Those whose disk takes no records now: they are asked for without, now and then."""
        self._held_back: dict[_Followed, None] = {}
        """Those that are not asked for until a throttle allows it."""
        self._wake = asyncio.Event()
        """Set when there is something to fetch."""
        self._failure = ""
        """Why the leader could not be asked last time."""
        self._taking: Iterator[None] | None = None
        """What is left of the work on an answer."""
        self._task = loop.create_task(self._run())

    def __len__(self) -> int:
        return len(self._followed)

    # Which partitions

    def add(self, partition: Partition) -> None:
        """Follow a partition, in the role that it has now."""
        assert partition.follower is not None
        one = _Followed(partition, partition.follower, Backoff(self._longest_backoff_seconds))
        self._followed[one.key] = one
        if self._alignment.is_needed(partition):
            self._align(one, self._alignment.begin)
        else:
            self._want(one)

    def remove(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.index)
        self._followed.pop(key, None)
        self._session.drop(key)

    def retry_now(self) -> None:
        """The leader's broker has changed: what was in vain may succeed."""
        self._backoff.retry_now()

    def cancel(self) -> None:
        """Fetch no more, from now on."""
        self._followed.clear()
        for task in (self._task, *self._aligning):
            task.cancel()

    async def stop(self) -> None:
        tasks = (self._task, *self._aligning)
        self.cancel()
        await asyncio.wait(tasks)

    # Fetching

    async def _run(self) -> None:
        while True:
            try:
                await self._fetch()
            except KafkaError as error:
                self._session.failed()
                await self._back_off(str(error))
            except Exception as error:
                self._counters.count_unexpected(Place.REPLICATION)
                logger.error("a fetcher failed", exc_info=error)
                self._session.failed()
                await self._back_off(repr(error))

    async def _fetch(self) -> None:
        """Requests and their answers, as long as these are short. Raises where the leader does not give one."""
        while not self._may_ask():
            self._wake.clear()
            await self._wake.wait()
        self._taking = None
        response = await self._ask(self.leader_id, self._next_call(), self.lane, self._take_at_once)
        turns = Turns(self._clocks)
        for _ in self._taking or self._take_all(response):
            await turns.step()

    def _may_ask(self) -> bool:
        return not self._flushing and len(self._session) > 0

    def _next_call(self) -> FetchCall:
        return FetchCall(self._session.next_request(), _FETCH_VERSIONS)

    def _take_at_once(self, response: FetchResponse) -> FetchCall | None:
        """In the turn in which an answer comes: what it gives, and the next request, if one turn is enough."""
        turns = Turns(self._clocks)
        self._taking = self._take_all(response)
        for _ in self._taking:
            if turns.is_over:
                return None
        if not self._may_ask():
            return None
        self._taking = None
        return self._next_call()

    async def _back_off(self, reason: str) -> None:
        if reason != self._failure:
            logger.warning("%d partitions cannot be fetched from broker %d: %s", len(self), self.leader_id, reason)
            self._failure = reason
        await self._backoff.wait()

    # Each part of this work may be followed by others' turns.

    def _take_all(self, response: FetchResponse) -> Iterator[None]:
        """Raises where the answer is of no use as a whole."""
        answers = self._session.received(response)
        self._backoff.succeeded()
        if self._failure:
            logger.info("broker %d answers again", self.leader_id)
            self._failure = ""
        for key, asked, fetched in answers:
            one = self._followed.get(key)
            if one is not None and self._answers(one, asked):
                yield from self._take(one, fetched)
            else:
                # The leader takes for told what nobody has taken: it would not say it again (R15, R17).
                self._session.renew()
                if one is not None and one.follower.state is FollowerState.FETCHING:
                    self._want(one)
            yield

    def _answers(self, one: _Followed, asked: FetchPartition) -> bool:
        """Whether an answer counts: not for an earlier role, nor for a log that has grown since (R31)."""
        place = (one.follower.epoch, one.partition.log.log_end_offset)
        is_fetching = one.follower.state is FollowerState.FETCHING or one in self._full
        return one.is_current and is_fetching and place == (asked.current_leader_epoch, asked.fetch_offset)

    def _take(self, one: _Followed, fetched: PartitionFetched) -> Iterator[None]:
        if fetched.error_code:
            self._refused(one, fetched.error_code)
        elif fetched.diverging_epoch is not None:
            # The leader takes its high watermark for told, but it does not count before the log is aligned.
            self._session.renew()
            leader_end = EpochStart(*fetched.diverging_epoch)
            self._align(one, partial(self._alignment.diverged, leader_end=leader_end))
        elif _begins_below(one.partition, fetched):
            self._start_anew_with(one, fetched)
        else:
            try:
                yield from self._append(one, fetched)
            except Exception as error:
                self._failed(one, error)
            else:
                one.backoff.succeeded()
                if one in self._full:
                    self._drop(one)
                else:
                    self._want(one)

    def _append(self, one: _Followed, fetched: PartitionFetched) -> Iterator[None]:
        """Raises CORRUPT_MESSAGE also where nothing can be appended: to ask at once would give the same."""
        partition, records = one.partition, fetched.records
        has_grown = True
        if isinstance(records, memoryview) and len(records) and one not in self._full:
            has_grown = False
            for piece in checked_pieces(records, one.follower.epoch):
                partition.append_as_follower(piece, self._clocks.now_ms())
                has_grown = True
                yield
                if not one.is_current:
                    self._session.renew()
                    return
            self._throttles.fetched(partition, len(records))
            if self._partitions.cluster.is_being_added(partition.topic, partition.index):
                self._counters.replication.reassignment_in_bytes += len(records)
        one.follower.leader_high_watermark = fetched.high_watermark
        partition.take_watermarks(fetched.high_watermark, fetched.log_start_offset)
        if not has_grown:
            raise CorruptMessage(f"its leader sent no whole batch of epoch {one.follower.epoch} or before")

    def _start_anew_with(self, one: _Followed, fetched: PartitionFetched) -> None:
        """The leader's log starts inside of its first batch: ours starts with that, and takes it at once (R30)."""
        assert isinstance(fetched.records, memoryview)
        try:
            # Before the log is touched: what does not pass is not appended after it either.
            next(checked_pieces(fetched.records, one.follower.epoch), None)
        except KafkaError as error:
            self._failed(one, error)
            return
        first = read_header(fetched.records)
        offset = offset_of_straddling_batch(
            one.partition.log, first.base_offset, first.last_offset, fetched.log_start_offset
        )
        if offset is None:
            self._fail(one, f"its leader sent a batch for offset {first.base_offset}, where the log has others")
        else:
            self._align(one, lambda _, __: self._restart_at(one, offset, fetched))

    async def _restart_at(self, one: _Followed, offset: int, fetched: PartitionFetched) -> bool:
        await self._alignment.start_anew(one.partition, one.follower, offset)
        turns = Turns(self._clocks)
        for _ in self._append(one, fetched):
            await turns.step()
        return True

    def _want(self, one: _Followed) -> None:
        """Fetch a partition from where its log ends now, and finish first what cut it and failed."""
        if self._followed.get(one.key) is not one or not one.is_current:
            return
        if one.partition.log.is_truncating:
            self._align(one, self._alignment.begin)
            return
        one.follower.fetch()
        if one.follower.state is not FollowerState.FETCHING:
            return
        if one.partition.free_space.is_low:
            self._want_no_records(one)
            return
        if not one.partition.is_flushed():
            # A fetch says what this replica has (R6): with ``flush.messages``, what it has on disk.
            self._flushing[one] = None
            one.partition.when_flushed(partial(self._flushed, one))
            return
        wait_ms = self._throttles.wait_ms(one.partition)
        if wait_ms:
            self._hold_back(one, wait_ms)
            return
        self._ask_from_log_end(one)

    def _hold_back(self, one: _Followed, wait_ms: int) -> None:
        """Leave a partition out of the requests; one timer is enough for all of them."""
        self._drop(one)
        if not self._held_back:
            self._loop.call_later(wait_ms / 1000, self._ask_for_held_back)
        self._held_back[one] = None

    def _ask_for_held_back(self) -> None:
        held_back, self._held_back = self._held_back, {}
        for one in held_back:
            self._want(one)

    def _want_no_records(self, one: _Followed) -> None:
        """Where the disk is nearly full, follow at least what the leader deletes (R17): that may make space."""
        one.follower.wait(one.partition.free_space.sentence)
        if one not in self._full:
            self._full[one] = None
            self._ask_from_log_end(one, wants_records=False)
            self._loop.call_later(self._longest_backoff_seconds, self._look_for_space, one)

    def _look_for_space(self, one: _Followed) -> None:
        self._full.pop(one, None)
        self._want(one)

    def _ask_from_log_end(self, one: _Followed, *, wants_records: bool = True) -> None:
        log = one.partition.log
        self._session.want(
            one.key,
            one.follower.epoch,
            log.log_end_offset,
            log.epochs.latest,
            log.log_start_offset,
            wants_records=wants_records,
        )
        self._wake.set()

    def _flushed(self, one: _Followed, error: KafkaError | None) -> None:
        self._flushing.pop(one, None)
        self._wake.set()
        if error is None:
            self._want(one)
        else:
            self._failed(one, error)

    # What goes wrong

    def _refused(self, one: _Followed, error_code: int) -> None:
        match reaction_to(error_code):
            case Reaction.ASK_OFFSETS:
                self._align(one, self._alignment.out_of_range)
            case Reaction.FAIL:
                # As in every election: the leader hears of it a little earlier.
                self._fail(one, f"its leader is past epoch {one.follower.epoch}", logging.DEBUG)
            case Reaction.WAIT:
                self._wait(one, str(error_from_code(error_code, "its leader refuses the fetch")))

    def _align(self, one: _Followed, work: _Aligning) -> None:
        """Work on a log beside the fetches of the other partitions."""
        one.follower.truncate()
        self._session.drop(one.key)
        self._aligning.begin(self._aligned(one, work))

    async def _aligned(self, one: _Followed, work: _Aligning) -> None:
        try:
            has_changed = await work(one.partition, one.follower)
        except Exception as error:
            self._failed(one, error)
            return
        if has_changed:
            self._want(one)
        else:
            self._wait(one, "its log could not be brought in line with its leader's")

    def _failed(self, one: _Followed, error: Exception) -> None:
        """A disk that fails, or our own fault, is final for this epoch; all else may pass."""
        partition = one.partition
        if not isinstance(error, KafkaError):
            self._partitions.failed(partition.topic, partition.index, error)
        if partition.log.failure is not None or (not isinstance(error, KafkaError)):
            self._fail(one, str(error))
        else:
            self._wait(one, str(error))

    def _fail(self, one: _Followed, reason: str, level: int = logging.WARNING) -> None:
        one.follower.fail(reason)
        self._drop(one)
        logger.log(level, "%s: replication stopped until its next leader epoch: %s", one.partition.log.name, reason)

    def _wait(self, one: _Followed, reason: str) -> None:
        """Fetch again after a while. What passes within instants is as in every election, and not worth a line."""
        was_longest = one.backoff.is_longest
        seconds = one.backoff.failed()
        if one.backoff.is_longest and not was_longest:
            logger.info("%s: fetch failed, retrying: %s", one.partition.log.name, reason)
        one.follower.wait(reason)
        self._drop(one)
        self._loop.call_later(seconds, partial(self._want, one))

    def _drop(self, one: _Followed) -> None:
        if self._followed.get(one.key) is one:
            self._session.drop(one.key)


def _begins_below(partition: Partition, fetched: PartitionFetched) -> bool:
    """Whether the first batch of an answer begins below the end of the log."""
    records = fetched.records
    if not isinstance(records, memoryview) or len(records) < HEADER_BYTES:
        return False
    return read_header(records).base_offset < partition.log.log_end_offset
