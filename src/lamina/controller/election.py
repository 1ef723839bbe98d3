"""Who leads a partition, and who is in sync with it: the controller's rules for one partition (R44-R47).

Owns them, with what Lamina adds to Kafka's. A member that restarted uncleanly may have lost what it had acknowledged:
it leads only where no other member is left, and then the one whose log reaches furthest does. An in-sync set of which
nobody is online stays as it is: each of its members has all that was committed. Must not know why an election is held.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import NO_LEADER, Partition, new_partition
from lamina.settings.topic import UNCLEAN_LEADER_ELECTION_ENABLE
from lamina.topic_partition import TopicPartition


class LogEnd(NamedTuple):
    """How far a log reaches: the leader epoch of its last batch, and its log end offset."""

    last_epoch: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class ElectionFacts:
    """What an election must know and no image says. The active controller remembers it."""

    ends: Mapping[TopicPartition, Mapping[int, LogEnd]] = field(default_factory=dict)
    """By partition, how far the logs of brokers reach that started after an unclean stop."""
    overdue: frozenset[TopicPartition] = frozenset()
    """Partitions whose absent in-sync members are not waited for any longer."""
    silent: frozenset[int] = frozenset()
    """Brokers that may be dead, as it seems now: one of them begins to lead only where no other can."""
    is_unclean_enabled: bool = False
    """The broker's own ``unclean.leader.election.enable``, where nothing is set at run time."""

    def with_ends(self, broker_id: int, ends: Mapping[TopicPartition, LogEnd]) -> "ElectionFacts":
        """With what a broker reported; what was known of it stays, for nothing was appended to it since."""
        every = {**self.ends}
        for key, end in ends.items():
            every[key] = {**every.get(key, {}), broker_id: end}
        return replace(self, ends=every)

    def unresolved_in(self, image: Image, arriving: Set[int] = frozenset()) -> "ElectionFacts":
        """Without what an election has answered: where a partition has a leader, its in-sync set is good again.

        Of brokers that are ``arriving`` the image knows only their former life, so nothing is answered yet.
        """
        ends = {}
        for key, known in self.ends.items():
            partition = _find(image, key)
            if partition is not None:
                open_isr = partition.isr if partition.leader == NO_LEADER else ()
                ends[key] = {one: end for one, end in known.items() if one in open_isr or one in arriving}
        ends = {key: known for key, known in ends.items() if known}
        return replace(self, ends=ends, overdue=self.overdue & ends.keys())


NO_FACTS = ElectionFacts()


def elect(image: Image, key: TopicPartition, partition: Partition, facts: ElectionFacts) -> Partition:
    """The partition as it has to be with the brokers of this image; the same one if nothing has to change.

    A leader that is online stays. Members that are not leave the in-sync set, as long as one of them leads.
    """
    if not partition.isr:
        return _begin(image, key, partition)
    members = _Members.of(image, key, partition, facts)
    if members.good:
        return lead(partition, _first(partition, members.good, facts.silent), members.good)
    if members.is_leader_draining:
        return lead(partition, partition.leader, (partition.leader,))
    if members.suspect and (key in facts.overdue or not members.has_absent):
        return _lead_furthest(partition, members.suspect, facts.ends[key], facts.silent)
    if not members.suspect and _is_unclean_enabled(image, key, facts):
        return elect_uncleanly(image, key, partition) or lead(partition, NO_LEADER, partition.isr)
    return lead(partition, NO_LEADER, partition.isr)


def is_waiting(image: Image, key: TopicPartition, partition: Partition, facts: ElectionFacts) -> bool:
    """Whether a partition has no leader only because absent in-sync members may have more than those that are here."""
    if partition.leader != NO_LEADER or key in facts.overdue or key not in facts.ends:
        return False
    members = _Members.of(image, key, partition, facts)
    return bool(members.suspect and members.has_absent and not members.good)


def elect_uncleanly(image: Image, key: TopicPartition, partition: Partition) -> Partition | None:
    """Led by a replica that may lack records: its log is what the partition is from now on (R45). None is online: None.

    One that has no directory yet, or has lost it, would begin with nothing and never leads. One that is being added has
    copied a part at best: it leads where no other can.
    """
    for broker_id in (*partition.origin, *partition.adding):
        if image.is_online(broker_id, *key) and broker_id in partition.made_on:
            return replace(lead(partition, broker_id, (broker_id,)), is_recovering=True)
    return None


def lead(partition: Partition, leader: int, isr: Sequence[int]) -> Partition:
    """In a new leader epoch, unless nothing changes."""
    if leader == partition.leader and tuple(isr) == partition.isr:
        return partition
    return partition.led_by(leader, tuple(isr))


@dataclass(frozen=True, slots=True)
class _Members:
    """The in-sync set, by what each member is worth in an election."""

    good: tuple[int, ...]
    """Online, with all that was committed."""
    suspect: tuple[int, ...]
    """Online after an unclean stop."""
    has_absent: bool
    """Whether another may come back: one that is away or draining. One without its directory cannot."""
    is_leader_draining: bool
    """Whether the leader is about to stop and still leads."""

    @classmethod
    def of(cls, image: Image, key: TopicPartition, partition: Partition, facts: ElectionFacts) -> "_Members":
        ends = facts.ends.get(key, {})
        good: list[int] = []
        suspect: list[int] = []
        has_absent = is_leader_draining = False
        for broker_id in partition.isr:
            broker = image.brokers.get(broker_id)
            if broker is None:
                has_absent = True
            elif key in broker.offline or broker_id not in partition.replicas:
                continue
            elif broker.is_draining:
                has_absent = True
                is_leader_draining |= broker_id == partition.leader and broker_id not in ends
            else:
                (suspect if broker_id in ends else good).append(broker_id)
        return cls(tuple(good), tuple(suspect), has_absent, is_leader_draining)


def _begin(image: Image, key: TopicPartition, partition: Partition) -> Partition:
    """A partition that has no state yet gets its first one, as soon as a replica is online (R44)."""
    online = tuple(broker_id for broker_id in partition.replicas if image.is_online(broker_id, *key))
    if not online:
        return partition
    begun = new_partition(partition.replicas, online)
    # The partition epoch is counted where the change is made.
    return replace(partition, leader=begun.leader, leader_epoch=begun.leader_epoch, isr=begun.isr)


def _first(partition: Partition, candidates: Sequence[int], silent: Set[int]) -> int:
    """The leader if it is one of them, else the first in the order of the assignment that is not silent."""
    if partition.leader in candidates:
        return partition.leader
    likely = [broker_id for broker_id in candidates if broker_id not in silent] or candidates
    return next(broker_id for broker_id in partition.replicas if broker_id in likely)


def _lead_furthest(
    partition: Partition, suspect: Sequence[int], ends: Mapping[int, LogEnd], silent: Set[int]
) -> Partition:
    """Equal ends are equal logs: those members stay in sync, shorter ones copy what they lack first.

    Always in a new epoch: what the leader had lost and what it appends instead must not look alike.
    """
    furthest = max(ends[broker_id] for broker_id in suspect)
    equal = tuple(broker_id for broker_id in suspect if ends[broker_id] == furthest)
    leader = _first(partition, equal, silent)
    return partition.led_by(leader, equal)


def _is_unclean_enabled(image: Image, key: TopicPartition, facts: ElectionFacts) -> bool:
    """As the topic says, else as the controller's broker has it: set for itself, for all brokers, or in its file."""
    of_broker = ConfigResource(ResourceType.BROKER, str(image.controller_id))
    for resource in (ConfigResource(ResourceType.TOPIC, key[0]), of_broker, ConfigResource(ResourceType.BROKER, "")):
        text = image.configs_of(resource).get(UNCLEAN_LEADER_ELECTION_ENABLE.name)
        if text is not None:
            return UNCLEAN_LEADER_ELECTION_ENABLE.parse(text)
    return facts.is_unclean_enabled


def _find(image: Image, key: TopicPartition) -> Partition | None:
    topic = image.topics.get(key[0])
    if topic is None or topic.is_being_deleted or key[1] >= len(topic.partitions):
        return None
    return topic.partitions[key[1]]
