"""What a state machine decides: records for its log, and effects for its runtime.

The runtime appends the records, replays them and carries the effects out in one turn, with nothing in between; only
replies wait until the records are committed. Must not know any machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

R = TypeVar("R")


class Now(NamedTuple):
    """Both clocks, read once for a decision."""

    wall_ms: int
    """What records are stamped with and what retention is measured by."""
    monotonic_ms: int
    """What sessions and timeouts are measured by."""


Waiter = int
"""The number of a request that waits for its response; the runtime gives it out."""

TimerName = tuple[str, ...]


class Producer(NamedTuple):
    """On whose behalf records are written inside a transaction."""

    id: int
    epoch: int


class Reply(NamedTuple):
    """Answer a request, the one that is being decided or an earlier one that waits. An error is an answer too."""

    waiter: Waiter
    response: object


class SetTimer(NamedTuple):
    """Call the machine's ``on_timer`` with this name when the time has come; replaces a timer of the same name."""

    name: TimerName
    at_monotonic_ms: int


class CancelTimer(NamedTuple):
    name: TimerName


class ResolveRegexes(NamedTuple):
    """Find the topics that each expression stands for, without holding up other work, and give them to the group.

    If that fails, the group gets no results, and asks again later.
    """

    group_id: str
    regexes: tuple[str, ...]
    may_describe: Callable[[str], bool] | None = None
    """Which topics the member may know of that asks; ``None`` for all."""


class SendMarkers(NamedTuple):
    """End a transaction in every partition that it wrote to, and then call the machine's ``markers_written``.

    Not before the records of the same decision are committed. Each partition is tried until it has the marker or is
    gone; one that has it already may get it again.
    """

    transactional_id: str
    producer: Producer
    """The id that wrote, and the epoch of the marker, which may be above that of the records."""
    coordinator_epoch: int
    is_commit: bool
    partitions: frozenset[tuple[str, int]]
    """Topic names and indexes; a transaction may have none."""
    transaction_version: int
    needs_producer_id: bool
    """``markers_written`` needs a new producer id: this one has no epochs left."""
    has_timed_out: bool = False
    """Whether the transaction is aborted because its time ran out."""


Effect = Reply | SetTimer | CancelTimer | ResolveRegexes | SendMarkers


@dataclass(slots=True)
class Decision(Generic[R]):
    """Records go into the log as one batch, all or none, unless each of them means something alone."""

    records: list[R] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    producer: Producer | None = None
    """Set for records that count only when this producer's transaction commits."""
    is_atomic: bool = True
    soft_changes: list[Callable[[], None]] = field(default_factory=list)
    """Change what the machine knows and does not store. Made once the records are replayed, so that a decision whose
    records the log refuses leaves nothing behind."""
    is_refusable: bool = False
    """Whether all that the machine changes is in the records and ``soft_changes``."""
    if_too_large: "Callable[[], Decision[R]] | None" = None
    """What is decided instead if the log refuses the records; it undoes soft changes that were made at once."""

    def add(self, other: "Decision[R]") -> None:
        """Take over what another decision, made in the same turn, wants."""
        self.records += other.records
        self.effects += other.effects
        self.soft_changes += other.soft_changes

    def reply(self, waiter: Waiter, response: object) -> None:
        self.effects.append(Reply(waiter, response))

    def set_timer(self, name: TimerName, at_monotonic_ms: int) -> None:
        self.effects.append(SetTimer(name, at_monotonic_ms))

    def cancel_timer(self, name: TimerName) -> None:
        self.effects.append(CancelTimer(name))
