"""What must hold inside the brokers of a cluster, and in its store, after every step.

Owns these invariants: one leader for each epoch; a leader has everything that was committed, and so has whoever is in
sync; what is committed is on as many replicas as ``min.insync.replicas`` says; a leader's high watermark stays within
its log and does not go back; replicas agree below their high watermarks, byte for byte; states in the store change as
their leaders ask; no log directory is offline whose disk is sound. Must not change anything.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from lamina.broker.partitions.leader import Leader
from lamina.broker.partitions.partition import Partition
from lamina.image.topic import NO_LEADER
from lamina.image.topic import Partition as PartitionState
from tests.simulation.committed_logs import CommittedLogs, check_same
from tests.simulation.ensemble import Ensemble
from tests.simulation.judge import Judge, TopicPartition
from tests.simulation.loop import Process
from tests.simulation.member_node import MemberNode
from tests.simulation.stored_states import StoredStates, words

_NOT_SEEN: tuple[Leader | None, int, int] = (None, 0, 0)


class MemberWatch:
    def __init__(self, judge: Judge, nodes: Sequence[MemberNode], ensemble: Ensemble) -> None:
        self._judge = judge
        self._nodes = nodes
        self._ensemble = ensemble
        self._by_id = {node.id: node for node in nodes}
        self._states = StoredStates(judge, lambda: ensemble.zookeeper.entries, lambda: ensemble.zookeeper.zxid)
        self._committed = CommittedLogs(judge)
        self._leaders: dict[tuple[UUID, int, int], Process] = {}
        self._seen: dict[Partition, tuple[Leader | None, int, int]] = {}
        """Each partition's role, high watermark and end at the last look."""
        self._ends: dict[TopicPartition, dict[int, int]] = {}
        """Where each broker's log ended when it was last seen."""
        self._moved: list[tuple[Partition, Leader]] = []
        """Whose high watermark has moved since the last look."""

    def doubt(self, topic: str) -> None:
        """Committed records of this topic may be lost: its replicas have to agree in the end, and that is all."""
        self._committed.doubtful |= {topic}

    def look(self) -> None:
        for key, before, after in self._states.look(self._wanted_in_sync):
            self._ensemble.tell(f"{key[0]}-{key[1]}: {words(after)}")
            self._look_at_joined(key, before, after)
        for node in self._nodes:
            parts = node.parts
            if parts is None or not node.process.has_run:
                continue
            node.process.has_run = False
            if (failure := node.baseless_failure()) is not None:
                raise self._judge.violated(failure)
            with node.disks.readable():
                self._look_at_all(node, parts.partitions)
        for partition, leader in self._moved:
            self._look_at_commit(partition, leader)
        self._moved.clear()

    def _look_at_all(self, node: MemberNode, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if partition.log.failure is not None:
                continue
            found = (partition.leader, partition.high_watermark, partition.log.log_end_offset)
            seen = self._seen.get(partition)
            if seen is None:
                # It may have been another log until now.
                self._ends.setdefault((partition.topic, partition.index), {})[node.id] = found[-1]
                seen = _NOT_SEEN
            if found != seen:
                self._look_at(node, partition, seen)
                self._seen[partition] = found

    def _look_at(self, node: MemberNode, partition: Partition, before: tuple[Leader | None, int, int]) -> None:
        log, high_watermark, leader = partition.log, partition.high_watermark, partition.leader
        key = (partition.topic_id, partition.index)
        led_before, high_watermark_before, end_before = before
        is_back = leader is not None and leader is led_before and high_watermark < high_watermark_before
        if is_back or not log.log_start_offset <= high_watermark <= log.log_end_offset:
            raise self._judge.violated(
                f"the high watermark of {log.name} on {node.machine} went from {high_watermark_before} to "
                f"{high_watermark}, and its log is from {log.log_start_offset} to {log.log_end_offset}"
            )
        self._ends.setdefault((partition.topic, partition.index), {})[node.id] = log.log_end_offset
        if high_watermark > high_watermark_before:
            role = leader or partition.follower
            if role is not None:
                self._committed.commit(key, log, high_watermark_before, high_watermark, role.epoch, node.machine)
            if leader is not None:
                self._moved.append((partition, leader))
        if leader is not None and leader is not led_before:
            self._look_at_leader(node, partition, leader)
        if log.log_end_offset < end_before:
            self._look_at_truncated(node, partition)

    def _look_at_truncated(self, node: MemberNode, partition: Partition) -> None:
        """Who is in sync may lead next, and keeps what is committed."""
        stored = self._states.of.get((partition.topic, partition.index))
        if stored is not None and node.id in stored.state.isr and node.is_serving:
            who = f"{node.machine}, which is in sync and was truncated,"
            key = (partition.topic_id, partition.index)
            self._committed.check(key, partition.log, stored.state.leader_epoch + 1, who)

    def _look_at_leader(self, node: MemberNode, partition: Partition, leader: Leader) -> None:
        key = (partition.topic_id, partition.index, leader.epoch)
        if self._leaders.setdefault(key, node.process) is not node.process:
            raise self._judge.violated(f"{partition.log.name} has two leaders in epoch {leader.epoch}")
        who = f"its leader in epoch {leader.epoch}, {node.machine},"
        self._committed.check(key[:2], partition.log, leader.epoch, who)

    def _look_at_commit(self, partition: Partition, leader: Leader) -> None:
        """What a leader commits is on as many replicas as it has to be, and on all that could lead next (R11, R93)."""
        key, high_watermark = (partition.topic, partition.index), partition.high_watermark
        who = f"{partition.log.name} was committed up to {high_watermark} in epoch {leader.epoch}"
        count = sum(self._ends[key].get(broker_id, -1) >= high_watermark for broker_id in leader.replicas)
        if count < leader.needed(partition.log.config.min_insync_replicas):
            raise self._judge.violated(f"{who}, which {count} replicas have")
        stored = self._states.of.get(key)
        if stored is None or stored.state.leader_epoch != leader.epoch:
            return
        for broker_id in stored.state.isr:
            replica = self._find(broker_id, key)
            if replica is not None and replica.log.log_end_offset < high_watermark:
                raise self._judge.violated(f"{who}, and broker {broker_id}, which is in sync, lacks some of it")

    # The store

    def _wanted_in_sync(self, key: TopicPartition, state: PartitionState) -> frozenset[int] | None:
        """What the leader of this epoch has asked for last, if it can be seen."""
        partition = self._find(state.leader, key)
        if partition is None or partition.leader is None or partition.leader.epoch != state.leader_epoch:
            return None
        proposal = partition.leader.proposal
        return partition.leader.in_sync if proposal is None else frozenset(proposal.in_sync)

    def _look_at_joined(self, key: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        """Who joins the in-sync set may lead next: it has all that is committed, and does not stop."""
        for broker_id in sorted(set(after.isr) - set(before.isr)):
            if self._is_draining(broker_id):
                raise self._judge.violated(f"broker {broker_id} is about to stop, and joins {key[0]}-{key[1]}")
            partition = self._find(broker_id, key)
            if partition is not None and partition.log.failure is None:
                who = f"broker {broker_id}, which joins the in-sync set,"
                id_and_index = (partition.topic_id, partition.index)
                with self._by_id[broker_id].disks.readable():
                    self._committed.check(id_and_index, partition.log, after.leader_epoch + 1, who)

    def _is_draining(self, broker_id: int) -> bool:
        """Whether the controller knows so; another one may not know yet that it was replaced."""
        members = [node.parts.member_parts for node in self._nodes if node.parts is not None]
        controllers = [one.member.controller for one in members if one is not None]
        active = [one for one in controllers if one is not None]
        if not active:
            return False
        last = max(active, key=lambda one: one.tenure.controller_epoch)
        broker = last.stream.image.brokers.get(broker_id)
        return broker is not None and broker.is_draining

    def _find(self, broker_id: int, key: TopicPartition) -> Partition | None:
        node = self._by_id.get(broker_id)
        if node is None or node.parts is None or not node.is_serving:
            return None
        return node.parts.partitions.find(*key)

    # Being whole

    def is_in_sync(self, node: MemberNode) -> bool:
        """Whether the store counts a node's replica of anything as in sync."""
        return any(node.id in stored.state.isr for stored in self._states.of.values())

    def is_mere_follower(self, node: MemberNode) -> bool:
        """Whether all that a node keeps is led by another one, which serves."""
        states = [stored.state for stored in self._states.of.values() if node.id in stored.state.replicas]
        leaders = [self._by_id.get(state.leader) for state in states]
        return all(leader is not None and leader is not node and leader.is_serving for leader in leaders)

    def is_about_to_join(self, node: MemberNode) -> bool:
        """Whether a leader on another broker than the controller's has asked for it."""
        for other in self._nodes:
            if other.parts is not None and not other.is_controller:
                for partition in other.parts.partitions:
                    leader = partition.leader
                    if leader is not None and leader.proposal is not None and node.id in leader.proposal.in_sync:
                        return node.id not in leader.in_sync
        return False

    def may_lose_replicas_of(self, node: MemberNode) -> bool:
        """Whether a node's replicas are not needed for any reassignment: who leads now will lead on after it."""
        states = [stored.state for stored in self._states.of.values() if stored.state.is_reassigning]
        return all(
            state.leader in state.target and state.leader != node.id for state in states if node.id in state.replicas
        )

    def may_lose_some(self, node: MemberNode, keys: Sequence[TopicPartition]) -> bool:
        """Whether none of these replicas of a node counts, nor is needed for a reassignment."""
        states = [stored.state for key in keys if (stored := self._states.of.get(key)) is not None]
        return self.may_lose_replicas_of(node) and not any(node.id in state.isr for state in states)

    def why_not_whole(self) -> str:
        """Why not every broker serves, and every partition is led with all replicas in sync; empty if so."""
        for node in self._nodes:
            if not node.is_serving:
                return f"{node.machine} does not serve"
        for key, stored in self._states.of.items():
            state = stored.state
            if state.leader == NO_LEADER or len(state.isr) < len(state.replicas) or state.is_reassigning:
                return f"{key[0]}-{key[1]} has {words(state)}"
        return ""

    def is_balanced(self) -> bool:
        """Whether every partition is led by its preferred replica."""
        return all(stored.state.leader == stored.state.replicas[0] for stored in self._states.of.values())

    def why_not_tidy(self) -> str:
        """Why not every broker has just the partitions that it is assigned, and counts as having them; empty if so."""
        for node in self._nodes:
            assigned = {key for key, stored in self._states.of.items() if node.id in stored.state.replicas}
            assert node.parts is not None
            kept = sorted(partition for directory in node.parts.directories for partition in directory.partitions())
            if kept != sorted(assigned):
                return f"{node.machine} has {kept} and is assigned {sorted(assigned)}"
            if node.parts.moves.under_way:
                return f"{node.machine} moves partitions between its directories"
            member = node.parts.member_parts
            topics = {} if member is None else member.following.decided.topics
            for name, topic in topics.items():
                for index, state in enumerate(topic.partitions):
                    if set(state.made_on) != set(state.replicas):
                        return f"{name}-{index} of {list(state.replicas)} is made on {list(state.made_on)}"
        return ""

    def assigned(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of every partition, as they are stored."""
        return {key: stored.state.replicas for key, stored in self._states.of.items()}

    def lost_power(self) -> None:
        """All brokers did: only what was acknowledged had to be synced."""
        self._judge.lost_power()
        self._committed.forget()

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._states.of)

    def leader_of(self, key: TopicPartition) -> MemberNode | None:
        """Whom the store names."""
        return self._by_id.get(self._states.of[key].state.leader)

    def followers_of(self, key: TopicPartition) -> list[MemberNode]:
        state = self._states.of[key].state
        return [self._by_id[one] for one in state.replicas if one != state.leader]

    def replicas_of(self, key: TopicPartition) -> tuple[Partition | None, list[Partition]]:
        """The replica that leads, and the others, of brokers that serve."""
        state = self._states.of[key].state
        others = [self._find(one, key) for one in state.replicas if one != state.leader]
        return self._find(state.leader, key), [one for one in others if one is not None]

    def committed_end(self, key: TopicPartition, before_epoch: int) -> int:
        """Where that ends which was committed before a leader epoch."""
        return self._committed.end((UUID(bytes=self._states.of[key].topic_id), key[1]), before_epoch)

    def check_logs_agree(self) -> None:
        """In the end: every replica has all that was committed, and of what could be lost all have the same."""
        for topic, index in self._states.of:
            if topic in self._committed.doubtful:
                leader, followers = self.replicas_of((topic, index))
                if leader is not None:
                    check_same(self._judge, leader.log, [follower.log for follower in followers])
        for node in self._nodes:
            assert node.parts is not None
            for partition in node.parts.partitions:
                key = (partition.topic_id, partition.index)
                self._committed.check(key, partition.log, partition.epoch + 1, node.machine)
