"""What the active controller remembers for elections, which no image says, kept up beside its changes.

Owns when it is brought up to date, and that this is done on a thread where it is about many partitions: after unclean
stops of several brokers it can be about all of them. Must not know what an election decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lamina.broker.threads import Threads, giving_way
from lamina.controller.brokers import waiting_partitions
from lamina.controller.election import ElectionFacts, LogEnd
from lamina.image.image import Image
from lamina.topic_partition import TopicPartition

T = TypeVar("T")

_AT_ONCE = 500
"""Log ends that are looked at on the loop, within some milliseconds."""


class KnownFacts:
    def __init__(self, facts: ElectionFacts, thread: Threads) -> None:
        self.now = facts
        self._thread = thread

    async def learn_ends(
        self, broker_id: int, ends: Mapping[TopicPartition, LogEnd], is_news: Callable[[], bool]
    ) -> None:
        """Take what a broker told, if it is still news in the turn in which it counts; it does from that turn on."""
        while is_news():
            facts = self.now
            learned = await self._on_thread(partial(facts.with_ends, broker_id, ends), max(len(facts.ends), len(ends)))
            if self.now is facts and is_news():
                self.now = learned
                return

    def stop_waiting_for(self, partitions: frozenset[TopicPartition]) -> None:
        self.now = replace(self.now, overdue=self.now.overdue | partitions)

    async def review(self, image: Image, arriving: Callable[[], frozenset[int]]) -> frozenset[TopicPartition]:
        """Forget what an image has answered. Returns the partitions that wait for a better leader.

        ``arriving`` tells which brokers are registered that the image does not know in this epoch.
        """
        while True:
            facts = self.now
            if not facts.ends and not facts.overdue:
                return frozenset()
            left, waiting = await self._on_thread(partial(_reviewed, facts, image, arriving()), len(facts.ends))
            if self.now is facts:
                self.now = left
                return waiting

    async def _on_thread(self, work: Callable[[], T], count: int) -> T:
        if count <= _AT_ONCE:
            return work()

        def done() -> T:
            with giving_way():
                return work()

        return await self._thread.run(done)


def _reviewed(
    facts: ElectionFacts, image: Image, arriving: frozenset[int]
) -> tuple[ElectionFacts, frozenset[TopicPartition]]:
    left = facts.unresolved_in(image, arriving)
    return left, waiting_partitions(image, left)
