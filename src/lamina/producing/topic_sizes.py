"""How many partitions topics have, asked for once.

Owns what is done about a topic that does not exist: brokers may make it when they are asked for it, as they do for
Spark's own Kafka sink (``auto.create.topics.enable``). Must not know what is written there.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from lamina.errors import ErrorCode, error_from_code
from lamina.peer.cluster import ClusterClient
from lamina.peer.routes import metadata_call
from lamina.peer.target import AnyBroker
from lamina.producing.errors import WriteError

_APPEARS_WITHIN_SECONDS: Final = 5.0
_ASKED_EACH_SECONDS: Final = 0.1
_NOT_YET: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class TopicSizes:
    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._known: dict[str, int] = {}

    async def of(self, topics: Iterable[str]) -> dict[str, int]:
        """Raises `WriteError` for one that does not exist, or `KafkaError`."""
        wanted = [topic for topic in topics if topic not in self._known]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _APPEARS_WITHIN_SECONDS
        while wanted:
            missing = await self._ask(wanted)
            if missing and loop.time() >= deadline:
                raise WriteError(f"there is no topic {missing[0]!r}; create it before it is written to")
            if missing:
                await asyncio.sleep(_ASKED_EACH_SECONDS)
            wanted = missing
        return self._known

    async def _ask(self, topics: list[str]) -> list[str]:
        """Those that are not there yet."""
        call = metadata_call(topics, creates_topics=True)
        missing = []
        for told in (await self._cluster.request(AnyBroker(), call)).topics:
            if told.error_code in _NOT_YET or not (told.error_code or told.partitions):
                missing.append(told.name)
            elif told.error_code:
                error = error_from_code(told.error_code, f"topic {told.name!r} cannot be written to")
                raise WriteError(str(error)) from error
            else:
                self._known[told.name] = len(told.partitions)
        return missing
