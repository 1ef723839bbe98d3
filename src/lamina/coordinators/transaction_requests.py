"""Requests to the transaction coordinator, its responses and its settings, independent of protocol versions.

Errors are raised as :class:`~lamina.errors.KafkaError`, or are the answer of a request that had to wait. Must not
know the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lamina.coordinators.decision import Producer
from lamina.errors import (
    CoordinatorLoadInProgress,
    InvalidProducerEpoch,
    InvalidRequest,
    KafkaError,
    ProducerFenced,
)
from lamina.topic_partition import TopicPartition

NO_PRODUCER = Producer(-1, -1)

CLASSIC = 0
"""What a client speaks that adds partitions itself and keeps its epoch from one transaction to the next."""
BUMPING = 2
"""Transaction version 2 (KIP-890): every end raises the epoch, and partitions are added by the brokers."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The broker's settings and the level of a feature. Defaults are Kafka's."""

    max_timeout_ms: int = 15 * 60 * 1000
    abort_timed_out_interval_ms: int = 10_000
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    remove_expired_interval_ms: int = 60 * 60 * 1000
    transaction_version: int = BUMPING
    """The finalized level of ``transaction.version``."""


class ProducerIdNeeded(CoordinatorLoadInProgress):
    """Ask again with a new producer id. Machines know no store, and few requests need one."""


def expected_producer(producer_id: int, epoch: int) -> Producer | None:
    """Who a client of InitProducerId version 3 and up says it is; ``None`` for one that starts."""
    if (producer_id == NO_PRODUCER.id) != (epoch == NO_PRODUCER.epoch):
        raise InvalidRequest(f"producer id {producer_id} and epoch {epoch}: both must be given, or neither")
    return None if producer_id == NO_PRODUCER.id else Producer(producer_id, epoch)


def fenced(reason: str, *, is_known: bool) -> KafkaError:
    """PRODUCER_FENCED came late; older versions of an API say INVALID_PRODUCER_EPOCH instead."""
    return ProducerFenced(reason) if is_known else InvalidProducerEpoch(reason)


# From producers


class InitRequest(NamedTuple):
    """Answered with the :class:`Producer` that the client is from now on."""

    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """Who the client is, if it goes on after an error (KIP-360)."""
    knows_fenced: bool = True
    """Version 4 and up."""
    fresh_producer_id: int | None = None
    """Only after ProducerIdNeeded."""


class AddPartitionsRequest(NamedTuple):
    """From a client, or from a broker whose client writes in version 2. Answered with ``None``."""

    transactional_id: str
    producer: Producer
    partitions: frozenset[TopicPartition]
    client_version: int
    """``CLASSIC`` up to version 3 of AddPartitionsToTxn; what brokers send is ``BUMPING``."""
    knows_fenced: bool = True
    """Version 2 and up."""


class VerifyPartitionsRequest(NamedTuple):
    """From a broker whose classic client writes: are these in the transaction? Answered with :data:`Verified`."""

    transactional_id: str
    producer: Producer
    partitions: frozenset[TopicPartition]


Verified = Mapping[TopicPartition, KafkaError | None]


class AddOffsetsRequest(NamedTuple):
    """Adds the partition of ``__consumer_offsets`` that a group lives in. Answered with ``None``."""

    transactional_id: str
    producer: Producer
    group_id: str
    offsets_partition_count: int
    knows_fenced: bool = True
    """Version 2 and up."""


class EndRequest(NamedTuple):
    """Answered with the :class:`Producer` that the client is from now on; ``NO_PRODUCER`` to a classic one."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    client_version: int
    """``BUMPING`` from version 5 of EndTxn."""
    knows_fenced: bool = True
    """Version 2 and up."""
    fresh_producer_id: int | None = None
    """Only after ProducerIdNeeded."""


# From admins


class TransactionDescription(NamedTuple):
    transactional_id: str
    state: str
    timeout_ms: int
    start_timestamp_ms: int
    producer: Producer
    partitions: tuple[TopicPartition, ...]


class ListRequest(NamedTuple):
    """Every filter that is given must let a transaction through."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    """Version 1 and up: only those that are older; any, if negative."""
    id_pattern: str | None = None
    """Version 2 and up: a regular expression of RE2 for the whole id."""


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str


class ListResponse(NamedTuple):
    listings: tuple[TransactionListing, ...]
    unknown_states: tuple[str, ...]
    """States that were asked for and do not exist."""
