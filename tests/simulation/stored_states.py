"""What the ensemble holds of partitions, and which changes of it are allowed, whoever makes them.

Owns the rules of the chain of states: a partition epoch after the other, one leader for each leader epoch, only
replicas in sync, in-sync sets of an epoch changed as its leader asked, replicas that go shut out by a leader epoch, and
no write of a controller that is replaced. Must not know logs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from lamina.image.topic import NO_LEADER, Partition
from lamina.store import values, znode_values
from lamina.store.interface import Entry
from lamina.store.membership import CONTROLLER_EPOCH
from lamina.store.znode_paths import TOPICS, state_path
from tests.simulation.judge import Judge, TopicPartition


class Stored(NamedTuple):
    topic_id: bytes
    state: Partition
    controller_epoch: int


Wanted = Callable[[TopicPartition, Partition], frozenset[int] | None]
"""The in-sync set that the leader of a state asks for, where that leader is there to be looked at."""


class StoredStates:
    def __init__(self, judge: Judge, entries: Callable[[], Mapping[str, Entry]], zxid: Callable[[], int]) -> None:
        self._judge = judge
        self._entries = entries
        self._zxid = zxid
        self._seen_zxid = -1
        self._controller_epoch = 0
        """At the last look: nobody who was elected before that may have written since."""
        self.of: dict[TopicPartition, Stored] = {}
        """By topic and index, as they are now."""

    def look(self, wanted: Wanted) -> Iterable[tuple[TopicPartition, Partition, Partition]]:
        """Take in what has changed, each with the state before."""
        zxid = self._zxid()
        if zxid == self._seen_zxid:
            return ()
        self._seen_zxid = zxid
        changed = []
        before, self.of = self.of, dict(_read(self._entries(), self.of))
        for key, stored in self.of.items():
            known = before.get(key)
            if known is not None and known.topic_id == stored.topic_id and known is not stored:
                self._check(key, known, stored, wanted)
                changed.append((key, known.state, stored.state))
        found = self._entries().get(CONTROLLER_EPOCH)
        self._controller_epoch = 0 if found is None else values.load_number(found.value)
        return changed

    def _check(self, key: TopicPartition, old: Stored, new: Stored, wanted: Wanted) -> None:
        before, after = old.state, new.state
        what = f"the state of {key[0]}-{key[1]} went from {words(before)} to {words(after)}"
        if not after.isr or not set(after.isr) <= set(after.replicas) or after.leader not in (NO_LEADER, *after.isr):
            raise self._judge.violated(f"{what}: who leads and who is in sync does not fit")
        self._check_assignment(what, before, after)
        if after.partition_epoch == before.partition_epoch:
            return
        if after.partition_epoch < before.partition_epoch or after.leader_epoch < before.leader_epoch:
            raise self._judge.violated(f"{what}: its epoch went back")
        if new.controller_epoch < self._controller_epoch:
            raise self._judge.violated(f"{what}: its controller had been replaced")
        if after.leader_epoch > before.leader_epoch:
            return
        if after.leader != before.leader:
            raise self._judge.violated(f"{what}: two leaders in one epoch")
        asked = wanted(key, after)
        if asked is not None and frozenset(after.isr) != asked:
            raise self._judge.violated(f"{what}: its leader asked for {sorted(asked)}")

    def _check_assignment(self, what: str, before: Partition, after: Partition) -> None:
        """R51: what is added was not there, what is removed was, and what is dropped cannot be in sync."""
        is_sound = set(after.adding) <= set(after.replicas) and set(after.removing) <= set(after.origin)
        if not is_sound or len(set(after.replicas)) != len(after.replicas) or not after.target:
            raise self._judge.violated(f"{what}: its replicas do not fit")
        dropped = set(before.replicas) - set(after.replicas)
        if not dropped.isdisjoint(before.isr) and after.leader_epoch == before.leader_epoch:
            raise self._judge.violated(f"{what}: who was in sync is dropped, and not shut out")


def words(state: Partition) -> str:
    sentence = f"leader {state.leader} in epoch {state.leader_epoch} with {list(state.isr)} in sync"
    if state.is_reassigning:
        return f"{sentence}, on its way from {list(state.origin)} to {list(state.target)}"
    return f"{sentence} of {list(state.replicas)}"


def _read(
    entries: Mapping[str, Entry], known: Mapping[TopicPartition, Stored]
) -> Iterable[tuple[TopicPartition, Stored]]:
    for path, entry in entries.items():
        above, _, name = path.rpartition("/")
        if above != TOPICS:
            continue
        topic = znode_values.load_topic(name, entry.value)
        for index, partition in enumerate(topic.partitions):
            found = entries.get(state_path(name, index))
            if found is None:
                continue
            before = known.get((name, index))
            if before is not None and _is_known(before, topic.id, found.version, partition):
                yield (name, index), before
                continue
            state = znode_values.with_state(partition, found.value, found.version)
            controller_epoch = values.number(values.load(found.value)["controller_epoch"])
            yield (name, index), Stored(topic.id, state, controller_epoch)


def _is_known(before: Stored, topic_id: bytes, version: int, partition: Partition) -> bool:
    state = before.state
    return (before.topic_id, state.partition_epoch, state.assignment) == (topic_id, version, partition.assignment)
