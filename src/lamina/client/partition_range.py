"""What is read of one partition: a range of offsets, how far it is read, and which offsets in it have no record.

An offset has no record where compaction took it, where retention ran ahead of the reader, and where a transaction
left its marker or was aborted. The end is reached by position, not by a last record, which need not exist. Must not
know the network.
"""

from dataclasses import dataclass, field

from lamina.client.errors import ClientError

GAPS_KEPT = 20
"""Ranges that are remembered; more are only counted, so that memory does not grow with a compacted log."""


@dataclass(slots=True)
class PartitionRange:
    partition: int
    start: int
    end: int | None
    """Where to stop; ``None`` for never."""
    wanted: int = 0
    """Records below are passed over: what was asked for may lie behind the end of today."""
    position: int = field(init=False)
    """The next offset."""
    records: int = 0
    size_bytes: int = 0
    missing: int = 0
    gap_count: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """The first of them, half open."""

    def __post_init__(self) -> None:
        self.position = self.start

    @property
    def is_done(self) -> bool:
        return self.end is not None and self.position >= self.end

    def take(self, offset: int, size_bytes: int) -> bool:
        """Whether a record that came belongs to the range."""
        if offset != self.position:
            self.reach(offset)
        if self.end is not None and offset >= self.end:
            return False
        self.position = offset + 1
        if offset < self.wanted:
            self.start = self.position
            return False
        self.records += 1
        self.size_bytes += size_bytes
        return True

    def reach(self, offset: int) -> None:
        """The reader is at ``offset``, and nothing lies between the position and there."""
        if offset < self.position:
            raise ClientError(
                f"partition {self.partition} went back from offset {self.position} to {offset}: the topic was "
                "recreated, or its log was truncated; consume again"
            )
        reached = offset if self.end is None else min(offset, self.end)
        if reached <= self.position:
            return
        if self.position >= self.wanted:
            self.missing += reached - self.position
            self.gap_count += 1
            if len(self.gaps) < GAPS_KEPT:
                self.gaps.append((self.position, reached))
        else:
            self.start = reached
        self.position = reached
