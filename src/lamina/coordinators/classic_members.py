"""The members of a classic group: each with its metadata and the requests that it waits for, and all of them together.

Owns the members in the order in which they came, who leads, the static ones by their instance, those that were told an
id and have not joined with it yet, and what they agree on. Must not know states or timers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lamina.coordinators.decision import Waiter
from lamina.coordinators.group_requests import Client, DescribedMember, JoinedMember, JoinRequest
from lamina.coordinators.records.consumer_protocol import read_subscription
from lamina.coordinators.records.group_records import ClassicMemberValue
from lamina.errors import CorruptMessage, FencedInstanceId, UnknownMemberId


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """In order of preference, each with the member's metadata for it."""
    assignment: bytes = b""
    joins: Waiter | None = None
    """Its request to join, while the others are waited for."""
    syncs: Waiter | None = None
    """Its request for an assignment, while the leader computes it."""
    is_new: bool = False
    """It has not been told a generation yet, and has longer than its session timeout to come back."""

    @property
    def is_waiting(self) -> bool:
        return self.joins is not None or self.syncs is not None

    def update(self, request: JoinRequest) -> None:
        """Take over what the member sends when it joins again."""
        self.client = request.client
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.session_timeout_ms = request.session_timeout_ms
        self.protocols = request.protocols

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def supports(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    def preferred(self, candidates: frozenset[str]) -> str:
        """The member's vote."""
        return next(name for name, _ in self.protocols if name in candidates)

    def joined(self, protocol: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.instance_id, self.metadata(protocol))

    def described(self, protocol: str | None) -> DescribedMember:
        client_id, host = self.client
        return DescribedMember(
            self.member_id, self.instance_id, client_id, host, self.metadata(protocol), self.assignment
        )

    def stored(self, protocol: str | None) -> ClassicMemberValue:
        return ClassicMemberValue(
            self.member_id,
            self.instance_id,
            self.client.client_id,
            self.client.host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            self.assignment,
        )


def from_stored(value: ClassicMemberValue, protocol: str | None) -> ClassicMember:
    return ClassicMember(
        value.member_id,
        value.instance_id,
        Client(value.client_id, value.client_host),
        # Old records may say -1.
        value.session_timeout_ms if value.rebalance_timeout_ms < 0 else value.rebalance_timeout_ms,
        value.session_timeout_ms,
        () if protocol is None else ((protocol, value.subscription),),
        value.assignment,
    )


class ClassicMembers:
    def __init__(self) -> None:
        self._by_id: dict[str, ClassicMember] = {}
        self._static: dict[str, str] = {}
        self.pending: set[str] = set()
        """Ids that were given out and not used yet."""
        self.leader: str | None = None

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def __getitem__(self, member_id: str) -> ClassicMember:
        return self._by_id[member_id]

    def get(self, member_id: str) -> ClassicMember | None:
        return self._by_id.get(member_id)

    def of_instance(self, instance_id: str | None) -> ClassicMember | None:
        if instance_id is None:
            return None
        member_id = self._static.get(instance_id)
        return None if member_id is None else self._by_id[member_id]

    def require(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that says to be this one. Raises what tells it that it is not."""
        if instance_id is not None:
            holder = self._static.get(instance_id)
            if holder is None:
                raise UnknownMemberId(f"no member has the instance id {instance_id}")
            if holder != member_id:
                raise FencedInstanceId(f"another member has taken over the instance id {instance_id}")
        member = self._by_id.get(member_id)
        if member is None:
            raise UnknownMemberId(f"the group has no member {member_id}")
        return member

    # Coming and going

    def add(self, member: ClassicMember) -> None:
        self._by_id[member.member_id] = member
        self.pending.discard(member.member_id)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: ClassicMember) -> None:
        del self._by_id[member.member_id]
        if member.instance_id is not None:
            del self._static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self._by_id), None)

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """A static member came back under a new id; it keeps its place."""
        old = member.member_id
        member.member_id = member_id
        self._by_id = {one.member_id: one for one in self._by_id.values()}
        assert member.instance_id is not None
        self._static[member.instance_id] = member_id
        if self.leader == old:
            self.leader = member_id

    # Together

    @property
    def joining(self) -> int:
        return sum(member.joins is not None for member in self)

    @property
    def have_all_joined(self) -> bool:
        return not self.pending and all(member.joins is not None for member in self)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max(0, max((member.rebalance_timeout_ms for member in self), default=0))

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is a member that joined. False if none did."""
        leader = None if self.leader is None else self._by_id.get(self.leader)
        if leader is not None and leader.joins is not None:
            return True
        joined = next((member.member_id for member in self if member.joins is not None), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def all_support_one_of(self, protocols: Iterable[str]) -> bool:
        return any(all(member.supports(name) for member in self) for name in protocols)

    def vote(self) -> str:
        """The protocol that most prefer of those that all support; of equals, the one that was named first."""
        candidates = frozenset.intersection(*(frozenset(name for name, _ in member.protocols) for member in self))
        votes = Counter(member.preferred(candidates) for member in self)
        return votes.most_common(1)[0][0]

    def subscribed_topics(self, protocol: str) -> frozenset[str] | None:
        """What the members read; ``None`` if they do not say so in a way that the broker understands."""
        try:
            return frozenset(topic for member in self for topic in read_subscription(member.metadata(protocol)).topics)
        except CorruptMessage:
            return None
