"""Reading a topic as a member of a group: what the group gives this member, from where the group is.

What was given out is committed when the next records are asked for, when the caller has dealt with it; nothing
else is ever committed. Partitions come and go with the group: what was read of one that goes, and not given out yet,
is dropped, for its next owner reads it. Must not know any command, or what the records are for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lamina.client.cluster import REQUEST_SECONDS, Cluster
from lamina.client.errors import ClientError, sentence, why_no_member
from lamina.client.partition_range import PartitionRange
from lamina.client.reader import Reader

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_REBALANCING = frozenset(
    {
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "REBALANCE_IN_PROGRESS",
        "STALE_MEMBER_EPOCH",
        "_ASSIGNMENT_LOST",
    }
)
"""Why a commit is refused while the group rebalances. The next owner reads from the last commit."""


class GroupReader(Reader):
    _is_in_group = True

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        group: str,
        *,
        protocol: str,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None,
        read_committed: bool,
        follow: bool,
        silence_seconds: float,
    ) -> None:
        """``starts`` hold where the group has committed nothing, ``ends`` are ``None`` for never."""
        self._taken: list[PartitionRange] = []
        super().__init__(
            cluster,
            topic,
            self._taken,
            read_committed=read_committed,
            follow=follow,
            silence_seconds=silence_seconds,
        )
        self._group = group
        self._protocol = protocol
        strategy = cluster.given("partition.assignment.strategy") or ""
        self._is_cooperative = protocol == "consumer" or "cooperative" in strategy
        self._starts = starts
        self._ends = ends
        self._is_assigned = False
        self._mine: dict[int, PartitionRange] = {}
        self._dealt_with: dict[int, int] = {}
        """By partition of this member: up to which offset records were given out, and the next ones asked for."""
        self._committed: dict[int, int] = {}
        self._changed: set[int] = set()
        """Partitions that came or went since the last batch was begun."""

    def batches(self, is_stopped: Callable[[], bool], limit: int | None = None) -> Iterator[list["Message"]]:
        self._open = {}
        self._left = limit
        self._failure = None
        if limit == 0:
            return
        self._consumer = self._cluster.consumer(
            {
                **self._config(),
                "group.id": self._group,
                "group.protocol": self._protocol,
                "enable.auto.offset.store": False,
            }
        )
        try:
            self._consumer.subscribe([self._topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose)
            yield from self._until_done(is_stopped)
        finally:
            self._consumer.close()

    def _is_at_end(self) -> bool:
        return self._is_assigned and not self._open

    def _said(self, error: "KafkaError") -> str:
        return why_no_member(self._group, error) or super()._said(error)

    def _awaited(self) -> str:
        if not self._open:
            return f"group {self._group}, which assigned no partition to this member"
        return super()._awaited()

    # The group

    def _assign(self, consumer: "Consumer", partitions: list["TopicPartition"]) -> None:
        self._is_assigned = True
        known = {one.partition: one.offset for one in consumer.committed(partitions, REQUEST_SECONDS)}
        for one in partitions:
            number = one.partition
            start = known[number] if known.get(number, -1) >= 0 else self._starts.get(number, 0)
            end = None if self._ends is None else max(self._ends.get(number, start), start)
            each = PartitionRange(number, start, end)
            self._taken.append(each)
            self._open[number] = self._mine[number] = each
            self._dealt_with[number] = self._committed[number] = start
            self._changed.add(number)
            one.offset = start
        if self._is_cooperative:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        for each in [self._open[one.partition] for one in partitions]:
            if each.is_done:
                self._close(each)

    def _revoke(self, _: "Consumer", partitions: list["TopicPartition"]) -> None:
        self._commit()
        self._forget(partitions)

    def _lose(self, _: "Consumer", partitions: list["TopicPartition"]) -> None:
        """They are somebody else's already."""
        self._forget(partitions)

    def _forget(self, partitions: Iterable["TopicPartition"]) -> None:
        for one in partitions:
            for of_mine in (self._open, self._mine, self._dealt_with, self._committed):
                of_mine.pop(one.partition, None)
            self._changed.add(one.partition)
        self._is_assigned = self._is_assigned and self._is_cooperative

    def _next_batch(self, first: "Message") -> list["Message"]:
        """Without records of partitions that came or went meanwhile: it is not known by which member they were read."""
        from confluent_kafka import TopicPartition

        # What changed before is of no account: the first record was read after it.
        self._changed.clear()
        messages = super()._next_batch(first)
        if not self._changed:
            return messages
        for number in self._changed:
            if number in self._open:
                self._consumer.seek(TopicPartition(self._topic, number, self._open[number].position))
        return [message for message in messages if message.partition() not in self._changed]

    # Committing

    def _given_out(self) -> None:
        self._dealt_with = {number: each.position for number, each in self._mine.items()}
        self._commit()

    def _commit(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        new = {number: offset for number, offset in self._dealt_with.items() if offset > self._committed[number]}
        if not new:
            return
        offsets = [TopicPartition(self._topic, number, offset) for number, offset in new.items()]
        try:
            done: Any = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() in _REBALANCING:
                return
            raise ClientError(f"what was read could not be committed: {sentence(error.args[0])}") from error
        for one in done:
            if one.error is None:
                self._committed[one.partition] = one.offset
            elif one.error.name() not in _REBALANCING:
                where = f"{one.topic}-{one.partition}"
                raise ClientError(f"what was read of {where} could not be committed: {sentence(one.error)}")
