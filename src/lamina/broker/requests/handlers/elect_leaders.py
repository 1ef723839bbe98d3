"""ElectLeaders (key 43), versions 0-2.

Behaviour: leaders are elected on request, all in one change (R68): the preferred replica if it is in sync, or, where
nobody leads, also one that may lack records. Each partition gets its own outcome, once this broker tells clients of the
new leader; REQUEST_TIMED_OUT if that takes longer than the client's timeout. Without partitions all are meant, and
those that need no election are left out.
Version notes: v0 elects preferred leaders only and tells no error of the whole; the versions differ in encoding beside.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads, giving_way
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.controller.elect_leaders import ElectionType, Outcomes, elect_leaders
from lamina.errors import ErrorCode, InvalidRequest, KafkaError, RequestTimedOut
from lamina.image.image import Image
from lamina.image.topic import Partition
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import ELECT_LEADERS as API_KEY
from lamina.wire.building import response_shape


async def handle(metadata: Metadata, threads: Threads, clocks: Clocks, request: Request, message: Any) -> Any:
    election_type = _election_type(message)
    wanted = _wanted(message)
    outcomes: Outcomes = {}
    decided = metadata.decided

    async def change(image: Image) -> Image:
        nonlocal outcomes, decided
        facts = metadata.facts

        def elected() -> tuple[Image, Outcomes]:
            with giving_way():
                return elect_leaders(image, election_type, wanted, facts)

        decided, outcomes = await threads.run(elected)
        return decided

    await metadata.change(change)
    elected = {key: outcome for key, outcome in outcomes.items() if isinstance(outcome, Partition)}
    try:
        async with asyncio.timeout(message.timeout.total_seconds()):
            await metadata.wait_until(partial(_shows, decided, elected))
    except TimeoutError:
        outcomes = _not_shown(decided, metadata.image, outcomes)
    results = _Results(request)
    async for key, outcome in in_turns(outcomes.items(), clocks):
        results.add(key, outcome if isinstance(outcome, KafkaError) else None)
    return results.response(ErrorCode.NONE, [topic async for topic in in_turns(results.topics(), clocks)])


def _election_type(message: Any) -> ElectionType:
    number = getattr(message, "election_type", ElectionType.PREFERRED)
    try:
        return ElectionType(number)
    except ValueError:
        raise InvalidRequest(f"there is no election of type {number}: 0 is preferred, 1 unclean") from None


def _wanted(message: Any) -> list[TopicPartition] | None:
    if message.topic_partitions is None:
        return None
    return [(topic.topic, index) for topic in message.topic_partitions for index in topic.partitions]


def _shows(decided: Image, elected: Mapping[TopicPartition, Partition], image: Image) -> bool:
    return all(_is_shown(decided, image, key, partition) for key, partition in elected.items())


def _is_shown(decided: Image, image: Image, key: TopicPartition, elected: Partition) -> bool:
    """A topic that is gone meanwhile shows nothing any more, nor does another one that has its name by then."""
    topic = image.topics.get(key[0])
    if topic is None or topic.id != decided.topics[key[0]].id:
        return True
    return topic.partitions[key[1]].leader_epoch >= elected.leader_epoch


def _not_shown(decided: Image, image: Image, outcomes: Outcomes) -> Outcomes:
    timed_out = RequestTimedOut("the leader is elected, and this broker does not tell clients of it yet")
    return {
        key: timed_out if isinstance(outcome, Partition) and not _is_shown(decided, image, key, outcome) else outcome
        for key, outcome in outcomes.items()
    }


class _Results:
    """The response as it grows, one partition after another."""

    def __init__(self, request: Request) -> None:
        self._shape = response_shape(API_KEY, request.api_version)
        self._topic = self._shape.of("replica_election_results")
        self._partition = self._topic.of("partition_result")
        self._by_topic: defaultdict[str, list[Any]] = defaultdict(list)

    def add(self, key: TopicPartition, error: KafkaError | None) -> None:
        code, message = (ErrorCode.NONE, None) if error is None else (error.code, str(error))
        result = self._partition(partition_id=key[1], error_code=code, error_message=message)
        self._by_topic[key[0]].append(result)

    def topics(self) -> Iterator[Any]:
        for name, some in self._by_topic.items():
            yield self._topic(topic=name, partition_result=tuple(some))

    def response(self, error_code: ErrorCode, topics: Iterable[Any]) -> Any:
        return self._shape(error_code=error_code, replica_election_results=tuple(topics))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    results = _Results(request)
    for key in dict.fromkeys(_wanted(message) or ()):
        results.add(key, error)
    return results.response(error.code, results.topics())


API = Api(API_KEY, "ElectLeaders", range(3), error_response, is_for_controller=True)
