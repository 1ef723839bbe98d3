"""What became of the records that were sent: how many arrived, where, and which failed first.

Must not know the network.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Landed:
    """Records in one partition."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    """``None`` while no broker told offsets, as with acks=0."""


@dataclass(slots=True)
class Deliveries:
    sent: int = 0
    records: int = 0
    """Delivered."""
    size_bytes: int = 0
    """Of the keys and values delivered."""
    landed: dict[int, Landed] = field(default_factory=dict)
    failed_number: int | None = None
    """The lowest number among the failed, by the sender's own counting."""
    failure: str | None = None
    late_partition: int | None = None
    """That of the record that failed, if its time was over; -1 where it had none yet."""

    def arrive(self, size_bytes: int, partition: int, offset: int) -> None:
        self.records += 1
        self.size_bytes += size_bytes
        landed = self.landed.get(partition)
        if landed is None:
            landed = self.landed[partition] = Landed()
        landed.records += 1
        if offset >= 0:
            if landed.first_offset is None or landed.last_offset is None:
                landed.first_offset = landed.last_offset = offset
            elif offset > landed.last_offset:
                landed.last_offset = offset
            elif offset < landed.first_offset:
                landed.first_offset = offset

    def fail(self, number: int, sentence: str, late_partition: int | None = None) -> None:
        if self.failed_number is None or number < self.failed_number:
            self.failed_number = number
            self.failure = sentence
            self.late_partition = late_partition

    def explain(self, sentence: str) -> None:
        """Say better why the first record failed."""
        self.failure = sentence
