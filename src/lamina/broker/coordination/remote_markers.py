"""Markers for partitions that other brokers lead: WriteTxnMarkers (key 27), grouped by leader (R75).

Owns what one request says and how its response is read. Must not know who leads what, nor when to try again.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lamina.broker.coordination.broker_batches import AskBroker, BrokerBatches
from lamina.coordinators.decision import SendMarkers
from lamina.errors import KafkaError
from lamina.peer.call import MessageCall
from lamina.topic_partition import TopicPartition, by_topic
from lamina.wire.api_keys import WRITE_TXN_MARKERS

_VERSIONS = range(1, 3)
"""Version 2 says of which transaction version a marker is, so that one that comes late ends no later transaction."""

_WAIT_MS = 30_000
"""A leader may hold its response back for its request.timeout.ms, until every in-sync replica has the markers."""

Outcome = Mapping[TopicPartition, int]
"""Error codes; another version of Lamina may give some that this one does not know."""


class _Marker(NamedTuple):
    effect: SendMarkers
    partitions: tuple[TopicPartition, ...]


class RemoteMarkers:
    def __init__(self, ask_broker: AskBroker, loop: asyncio.AbstractEventLoop) -> None:
        self._batches: BrokerBatches[_Marker, Outcome] = BrokerBatches(ask_broker, _call, _outcomes, loop)

    async def write(
        self, effect: SendMarkers, by_leader: Mapping[int, Collection[TopicPartition]]
    ) -> dict[TopicPartition, int]:
        """What the leaders say of each partition; NETWORK_EXCEPTION where one says nothing."""
        answers = await asyncio.gather(
            *(self._batches.ask(leader, _Marker(effect, tuple(sorted(keys)))) for leader, keys in by_leader.items()),
            return_exceptions=True,
        )
        outcome: dict[TopicPartition, int] = {}
        for keys, answer in zip(by_leader.values(), answers, strict=True):
            if isinstance(answer, KafkaError):
                outcome |= dict.fromkeys(keys, answer.code)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                outcome |= answer
        return outcome

    async def close(self) -> None:
        await self._batches.close()


def _call(markers: Sequence[_Marker]) -> MessageCall:
    return MessageCall(WRITE_TXN_MARKERS, _VERSIONS, wait_ms=_WAIT_MS, markers=[_told(*marker) for marker in markers])


def _told(effect: SendMarkers, partitions: Iterable[TopicPartition]) -> dict[str, Any]:
    return {
        "producer_id": effect.producer.id,
        "producer_epoch": effect.producer.epoch,
        "transaction_result": effect.is_commit,
        "topics": [{"name": topic, "partition_indexes": of_topic} for topic, of_topic in by_topic(partitions).items()],
        "coordinator_epoch": effect.coordinator_epoch,
        "transaction_version": effect.transaction_version,
    }


def _outcomes(markers: Sequence[_Marker], response: Any) -> list[Outcome]:
    """Results are in the order of the request: a producer may be there more than once."""
    told = [
        {
            (str(topic.name), int(one.partition_index)): int(one.error_code)
            for topic in result.topics
            for one in topic.partitions
        }
        for result in response.markers
    ]
    return [{key: outcome[key] for key in marker.partitions} for marker, outcome in zip(markers, told, strict=True)]
