"""One member of a classic group: what it said of itself, what it was given, and what it waits for."""

from dataclasses import dataclass

from lamina.coordinators.decision import Waiter
from lamina.coordinators.group_requests import Client, DescribedMember, JoinedMember, JoinRequest
from lamina.coordinators.records.group_records import ClassicMemberValue


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """In order of preference, each with what the member says of itself for it."""
    assignment: bytes = b""
    joins: Waiter | None = None
    """Its request to join, while the others are waited for."""
    syncs: Waiter | None = None
    """Its request for an assignment, while the leader computes it."""
    is_new: bool = False
    """It has never been told a generation: it is given longer to be heard of again than its session."""

    @property
    def is_waiting(self) -> bool:
        return self.joins is not None or self.syncs is not None

    def listen(self, request: JoinRequest) -> None:
        """Take over what the member says of itself now."""
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
