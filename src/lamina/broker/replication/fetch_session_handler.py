"""The follower's half of an incremental fetch session (KIP-227): which Fetch comes next, and what its answer is about.

Owns what is wanted of one leader, and what the leader's session holds of it: a partition is told once, and again when
something of it has changed. Whatever goes wrong with the session, the next request is a full one. No I/O. Must not know
logs, nor what an answer means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from lamina.errors import ErrorCode, MalformedResponse, error_from_code
from lamina.settings.replication import (
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
)
from lamina.settings.values import BrokerSettings
from lamina.wire.fetch_request import READ_UNCOMMITTED, FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from lamina.wire.fetch_response import PartitionFetched
from lamina.wire.fetched import FetchResponse

PartitionKey = tuple[UUID, int]
"""Topic id and index: a topic that was deleted and made again is another one."""

_NO_SESSION = 0
_INITIAL_EPOCH = 0
_MAX_EPOCH = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FetchLimits:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


def fetch_limits(settings: BrokerSettings) -> FetchLimits:
    return FetchLimits(
        settings[REPLICA_FETCH_WAIT_MAX_MS],
        settings[REPLICA_FETCH_MIN_BYTES],
        settings[REPLICA_FETCH_RESPONSE_MAX_BYTES],
        settings[REPLICA_FETCH_MAX_BYTES],
    )


class Answered(NamedTuple):
    key: PartitionKey
    asked: FetchPartition
    """As the leader knew it when it answered."""
    fetched: PartitionFetched


class FetchSessionHandler:
    def __init__(self, node_id: int, broker_epoch: Callable[[], int], limits: FetchLimits) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._limits = limits
        self._id = _NO_SESSION
        self._epoch = _INITIAL_EPOCH
        self._is_to_be_renewed = False
        self._wanted: dict[PartitionKey, FetchPartition] = {}
        self._told: dict[PartitionKey, FetchPartition] = {}
        """What the leader was last told, of all that its session holds."""
        self._changed: dict[PartitionKey, None] = {}
        """What may differ between the two, in order."""

    def __len__(self) -> int:
        """How many partitions are wanted."""
        return len(self._wanted)

    # What is wanted

    def want(
        self,
        key: PartitionKey,
        leader_epoch: int,
        offset: int,
        last_epoch: int,
        log_start_offset: int,
        *,
        wants_records: bool = True,
    ) -> None:
        """Fetch a partition from an offset on, from now on. A leader may send one batch whatever is wanted."""
        max_bytes = self._limits.partition_max_bytes if wants_records else 0
        self._wanted[key] = FetchPartition(key[1], leader_epoch, offset, last_epoch, log_start_offset, max_bytes)
        self._changed[key] = None

    def drop(self, key: PartitionKey) -> None:
        """Fetch a partition no more."""
        if self._wanted.pop(key, None) is not None:
            self._changed[key] = None

    def renew(self) -> None:
        """Have the leader tell everything again: it does not repeat what it takes for known.

        The next request is full, also if an answer is still to come.
        """
        self._is_to_be_renewed = True

    # Requests

    def next_request(self) -> FetchRequest:
        if self._is_to_be_renewed:
            self._restart(self._id)
        if self._epoch == _INITIAL_EPOCH:
            self._told = dict(self._wanted)
            told, forgotten = list(self._wanted), []
        else:
            told = [key for key in self._changed if key in self._wanted and self._wanted[key] != self._told.get(key)]
            forgotten = [key for key in self._changed if key in self._told and key not in self._wanted]
            for key in told:
                self._told[key] = self._wanted[key]
            for key in forgotten:
                del self._told[key]
        self._changed = {}
        limits = self._limits
        return FetchRequest(
            self._node_id,
            self._broker_epoch(),
            limits.max_wait_ms,
            limits.min_bytes,
            limits.max_bytes,
            READ_UNCOMMITTED,
            self._id,
            self._epoch,
            [
                FetchTopic(None, topic_id, [self._wanted[topic_id, index] for index in indexes])
                for topic_id, indexes in _by_topic(told).items()
            ],
            [ForgottenTopic(None, topic_id, tuple(indexes)) for topic_id, indexes in _by_topic(forgotten).items()],
            "",
        )

    # Answers

    def received(self, response: FetchResponse) -> list[Answered]:
        """What the leader says of partitions. Raises the error of the whole answer; then the next request is full."""
        if response.error_code:
            is_gone = response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._restart(_NO_SESSION if is_gone else self._id)
            raise error_from_code(response.error_code, "the leader refuses the whole fetch")
        answered = []
        for topic in response.topics:
            for fetched in topic.partitions:
                asked = None if topic.topic_id is None else self._told.get((topic.topic_id, fetched.partition_index))
                if topic.topic_id is None or asked is None:
                    self.failed()
                    raise MalformedResponse("a Fetch response is about a partition that was not asked for")
                answered.append(Answered((topic.topic_id, fetched.partition_index), asked, fetched))
        if response.session_id == _NO_SESSION:
            self._restart(_NO_SESSION)
        elif self._epoch != _INITIAL_EPOCH and response.session_id != self._id:
            self.failed()
        else:
            self._id = response.session_id
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        return answered

    def failed(self) -> None:
        """No answer came, or none that can be used: begin anew, and have the leader drop the session it may hold."""
        self._restart(self._id)

    def _restart(self, session_id: int) -> None:
        self._id = session_id
        self._epoch = _INITIAL_EPOCH
        self._is_to_be_renewed = False


def _by_topic(keys: list[PartitionKey]) -> dict[UUID, list[int]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return topics
