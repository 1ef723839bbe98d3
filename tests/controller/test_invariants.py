"""Any events in any order: what must hold of every partition after each of them.

The machine knows what a broker knows (its epoch, how it stopped, what it lost) and does what the controller's shell
does with facts. It models no logs: whether committed records survive is the simulation's question.
"""

from contextlib import suppress
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamina.broker.metadata.change_messages import encode_changes, patched
from lamina.controller.brokers import (
    Arrival,
    broker_drains,
    broker_ready,
    broker_unregistered,
    brokers_gone,
    elect_waiting,
    replicas_made,
    replicas_offline,
    replicas_removed,
    take_over,
    waiting_partitions,
)
from lamina.controller.deletion import deletion_reported
from lamina.controller.elect_leaders import ElectionType, balance_leaders, elect_leaders
from lamina.controller.election import NO_FACTS, ElectionFacts, LogEnd
from lamina.controller.in_sync import BrokerState, InSyncRequest, alter_partitions
from lamina.controller.placement import place, place_more
from lamina.controller.reassignment import cancel, reassign
from lamina.errors import BrokerIdNotRegistered, KafkaError
from lamina.image.changes import add_partitions, create_topic, mark_deleted, set_partitions
from lamina.image.diff import diff
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER, Partition
from lamina.topic_partition import TopicPartition
from tests.examples import examples
from tests.image.steps import CLUSTER_ID, broker, topic_id

BROKERS = st.integers(1, 4)
NAMES = st.sampled_from(["a", "b", "c"])
ENDS = st.builds(LogEnd, st.integers(0, 3), st.integers(0, 5))


class Cluster(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.image = Image(CLUSTER_ID)
        self.facts = NO_FACTS
        self.registrations = 0
        self.topics_made = 0

    # Events

    @initialize(count=st.integers(1, 4))
    def three_or_so(self, count: int) -> None:
        for broker_id in range(1, count + 1):
            self.comes(broker_id, None, frozenset(), frozenset())

    def after(self, image: Image, *, is_unclean: bool = False, vouched: frozenset[int] = frozenset()) -> None:
        """What holds between the image before an event and the one after it.

        ``vouched`` are members that the leader says are in sync.
        """
        before, self.image = self.image, image
        assert patched(before, encode_changes(diff(before, image))) == image
        for key, new in partitions(image).items():
            old = partitions(before).get(key)
            if old is None or before.topics[key[0]].id != image.topics[key[0]].id:
                assert new.partition_epoch in (0, -1)
                continue
            check_step(old, new, vouched, is_unclean=is_unclean or self.facts.is_unclean_enabled)
        self.facts = self.facts.unresolved_in(image)

    @rule(
        broker_id=BROKERS,
        end=st.none() | ENDS,
        lost=st.frozensets(st.tuples(NAMES, st.integers(0, 3)), max_size=3),
        offline=st.frozensets(st.tuples(NAMES, st.integers(0, 3)), max_size=2),
    )
    def comes(
        self, broker_id: int, end: LogEnd | None, lost: frozenset[TopicPartition], offline: frozenset[TopicPartition]
    ) -> None:
        """Also while it is still there: then it has restarted unseen."""
        self.facts = self._reported(broker_id, end)
        self.after(broker_ready(self.image, self._arrival(broker_id, lost, offline), self.facts))

    def _reported(self, broker_id: int, end: LogEnd | None) -> ElectionFacts:
        ends = {} if end is None else dict.fromkeys(partitions(self.image), end)
        return self.facts.with_ends(broker_id, ends)

    def _arrival(self, broker_id: int, lost: frozenset[TopicPartition], offline: frozenset[TopicPartition]) -> Arrival:
        self.registrations += 1
        return Arrival(replace(broker(broker_id), epoch=self.registrations, offline=offline), lost)

    @rule(broker_ids=st.frozensets(BROKERS, min_size=1, max_size=3))
    def go(self, broker_ids: frozenset[int]) -> None:
        self.after(brokers_gone(self.image, broker_ids, self.facts))

    @precondition(lambda self: bool(self.image.brokers))
    @rule(data=st.data())
    def drains(self, data: st.DataObject) -> None:
        self.after(broker_drains(self.image, self._live(data), self.facts))

    @rule(broker_id=BROKERS)
    def is_unregistered(self, broker_id: int) -> None:
        with suppress(BrokerIdNotRegistered):
            self.after(broker_unregistered(self.image, broker_id, self.facts))
            assert not any(broker_id in holders for holders in self.image.deletions.values())

    @precondition(lambda self: bool(self.image.brokers))
    @rule(data=st.data(), is_lost=st.booleans())
    def has_offline(self, data: st.DataObject, is_lost: bool) -> None:
        broker_id = self._live(data)
        keys = data.draw(st.frozensets(st.tuples(NAMES, st.integers(0, 3)), max_size=4))
        lost = keys if is_lost else frozenset()
        self.after(replicas_offline(self.image, broker_id, keys, lost, self.facts))

    @precondition(lambda self: bool(self.image.brokers))
    @rule(data=st.data())
    def makes(self, data: st.DataObject) -> None:
        self.after(replicas_made(self.image, self._live(data), list(partitions(self.image))))

    @rule(arrived=st.dictionaries(BROKERS, st.tuples(st.none() | ENDS, st.booleans())))
    def other_controller(self, arrived: dict[int, tuple[LogEnd | None, bool]]) -> None:
        """It remembers nothing: brokers report again. Some have restarted, and nobody saw it."""
        arrivals = []
        self.facts = replace(NO_FACTS, is_unclean_enabled=self.facts.is_unclean_enabled)
        for broker_id, (end, is_restarted) in arrived.items():
            old = self.image.brokers.get(broker_id)
            if old is not None and not is_restarted:
                arrivals.append(Arrival(old))
            else:
                self.facts = self._reported(broker_id, end)
                arrivals.append(self._arrival(broker_id, frozenset(), frozenset()))
        self.after(take_over(self.image, 1, self.image.controller_epoch + 1, arrivals, self.facts))

    @rule()
    def waits_too_long(self) -> None:
        self.facts = replace(self.facts, overdue=waiting_partitions(self.image, self.facts))
        self.after(elect_waiting(self.image, self.facts))

    @rule(is_enabled=st.booleans())
    def allows_unclean(self, is_enabled: bool) -> None:
        self.facts = replace(self.facts, is_unclean_enabled=is_enabled)
        self.after(elect_waiting(self.image, self.facts))

    @precondition(lambda self: bool(partitions(self.image)))
    @rule(data=st.data(), is_unclean=st.booleans())
    def somebody_asks_for_elections(self, data: st.DataObject, is_unclean: bool) -> None:
        keys = data.draw(st.none() | st.lists(st.sampled_from(sorted(partitions(self.image))), min_size=1))
        election_type = ElectionType.UNCLEAN if is_unclean else ElectionType.PREFERRED
        image, _ = elect_leaders(self.image, election_type, keys, self.facts)
        self.after(image, is_unclean=is_unclean)

    @rule(percentage=st.integers(0, 100))
    def balances(self, percentage: int) -> None:
        elected = balance_leaders(self.image, percentage)
        self.after(set_partitions(self.image, elected))
        assert not balance_leaders(self.image, percentage), "all that could be brought back was"

    @precondition(lambda self: bool(partitions(self.image)))
    @rule(data=st.data(), is_recovering=st.booleans(), is_stale=st.booleans())
    def leader_asks(self, data: st.DataObject, is_recovering: bool, is_stale: bool) -> None:
        """With members that may be anything, and a state that may be old."""
        key = data.draw(st.sampled_from(sorted(partitions(self.image))))
        partition = partitions(self.image)[key]
        sender = self.image.brokers.get(partition.leader)
        if sender is None:
            return
        members = data.draw(st.frozensets(BROKERS, max_size=3)) | {partition.leader}
        epochs = {one.id: one.epoch for one in self.image.brokers.values()}
        isr = tuple(BrokerState(one, epochs.get(one, -1)) for one in members)
        request = InSyncRequest(partition.leader_epoch, partition.partition_epoch - is_stale, isr, is_recovering)
        requests = {(self.image.topics[key[0]].id, key[1]): request}
        image, _ = alter_partitions(self.image, sender.id, sender.epoch, requests, self.facts)
        self.after(image, vouched=members)

    @precondition(lambda self: bool(self.image.brokers))
    @rule(name=NAMES, count=st.integers(1, 3), data=st.data())
    def makes_topic(self, name: str, count: int, data: st.DataObject) -> None:
        factor = data.draw(st.integers(1, len(self.image.brokers)))
        if name not in self.image.topics:
            self.topics_made += 1
            placed = place(tuple(self.image.brokers.values()), count, factor, 0, 0)
            self.after(create_topic(self.image, name, topic_id(self.topics_made), placed))

    @precondition(lambda self: bool(partitions(self.image)))
    @rule(data=st.data(), replicas=st.lists(BROKERS, max_size=4, unique=True))
    def somebody_reassigns(self, data: st.DataObject, replicas: list[int]) -> None:
        """Or cancels, which no replicas stand for."""
        key = data.draw(st.sampled_from(sorted(partitions(self.image))))
        try:
            if replicas:
                changed = reassign(self.image, key, replicas, self.facts)
            else:
                changed = cancel(self.image, key, self.facts)
        except KafkaError:
            return
        self.after(set_partitions(self.image, {key: changed} if changed != partitions(self.image)[key] else {}))

    @rule(broker_id=BROKERS)
    def has_removed(self, broker_id: int) -> None:
        """What it keeps no more; and it says so also where it keeps it again."""
        self.after(replicas_removed(self.image, broker_id, list(partitions(self.image))))

    @precondition(lambda self: bool(self.image.brokers and partitions(self.image)))
    @rule(data=st.data())
    def topic_grows(self, data: st.DataObject) -> None:
        name, _ = data.draw(st.sampled_from(sorted(partitions(self.image))))
        topic = self.image.topics[name]
        is_settled = not any(partition.is_reassigning for partition in topic.partitions)
        if is_settled and len(topic.partitions) < 4 and len(topic.partitions[0].replicas) <= len(self.image.brokers):
            placed = place_more(self.image, topic, len(topic.partitions) + 1)
            self.after(add_partitions(self.image, name, placed))

    @precondition(lambda self: bool(partitions(self.image)))
    @rule(data=st.data())
    def deletes_topic(self, data: st.DataObject) -> None:
        name, _ = data.draw(st.sampled_from(sorted(partitions(self.image))))
        self.after(mark_deleted(self.image, name))

    @rule(broker_id=BROKERS)
    def has_deleted(self, broker_id: int) -> None:
        going = [topic.id for topic in self.image.topics.values() if topic.is_being_deleted]
        self.after(deletion_reported(self.image, broker_id, [*going, *self.image.deletions]))

    def _live(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.image.brokers)))

    # Invariants

    @invariant()
    def every_partition_is_as_it_must_be(self) -> None:
        waiting = waiting_partitions(self.image, self.facts)
        for key, partition in partitions(self.image).items():
            check_state(self.image, key, partition, is_waiting=key in waiting)

    @invariant()
    def deletions_are_remembered_only_for_brokers_that_may_have_some(self) -> None:
        assert all(self.image.deletions.values())


def partitions(image: Image) -> dict[TopicPartition, Partition]:
    """Of topics that are not being deleted."""
    return {
        (topic.name, index): partition
        for topic in image.topics.values()
        if not topic.is_being_deleted
        for index, partition in enumerate(topic.partitions)
    }


def check_step(old: Partition, new: Partition, vouched: frozenset[int], *, is_unclean: bool) -> None:
    assert new.leader_epoch >= old.leader_epoch
    assert new.partition_epoch - old.partition_epoch in (0, 1), "one event is one write"
    state = (old.leader, old.leader_epoch, old.isr, old.is_recovering)
    assert (new.partition_epoch == old.partition_epoch) == (
        state == (new.leader, new.leader_epoch, new.isr, new.is_recovering)
    )
    if new.leader != old.leader and old.isr:
        assert new.leader_epoch > old.leader_epoch
    if new == old:
        assert new is old
    if old.isr and not is_unclean:
        in_sync = {*old.isr, *vouched}
        assert in_sync & set(new.isr), "the last in-sync members never all go"
        assert new.leader in {NO_LEADER, *in_sync}
    if old.isr and not set(old.replicas) <= set(new.replicas):
        assert new.leader_epoch > old.leader_epoch, "who is no replica any more is shut out"
    if old.adding and not new.is_reassigning and new.replicas == old.target:
        assert set(old.adding) <= {*old.isr, *vouched}, "it is complete when all that come are in sync"


def check_state(image: Image, key: TopicPartition, partition: Partition, *, is_waiting: bool) -> None:
    check_assignment(partition)
    if not partition.isr:
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (NO_LEADER, -1, -1)
        assert not any(image.is_online(one, *key) for one in partition.replicas)
        return
    assert set(partition.isr) <= set(partition.replicas)
    assert len(set(partition.isr)) == len(partition.isr)
    online = [one for one in partition.isr if image.is_online(one, *key)]
    if partition.leader != NO_LEADER:
        assert partition.leader in partition.isr
        leader = image.brokers[partition.leader]
        assert key not in leader.offline
        assert not leader.is_draining or not online, "it drains, and another in-sync member could lead"
        assert set(online) == set(partition.isr) or partition.isr == (partition.leader,)
    else:
        assert not online or is_waiting


def check_assignment(partition: Partition) -> None:
    """R51: replicas are what was there and what comes; what comes was not there, and what goes was."""
    assert len(set(partition.replicas)) == len(partition.replicas) > 0
    assert set(partition.adding) <= set(partition.replicas)
    assert set(partition.removing) <= set(partition.origin)
    assert partition.target
    assert partition.replicas == partition.target + partition.removing


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=examples(600), stateful_step_count=40, deadline=None)
