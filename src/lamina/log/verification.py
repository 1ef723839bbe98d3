"""What stands between a partition and a write into a transaction that has ended: a verification (KIP-890).

The first transactional batch of a transaction in a partition is appended only with the very object that was made
before the coordinator was asked. A marker, or the first batch itself, takes it away: an answer that the coordinator
gave before then is good for nothing, even if another transaction of the same producer has begun meanwhile.
Must not know who asks the coordinator, nor how.
"""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class VerificationGuard:
    """A producer that wants to begin a transaction here; itself, not its fields, is what an append has to show."""

    epoch: int
    lowest_sequence: int
    """What it may begin with. A later batch must wait until an earlier one, whose verification failed, comes again."""
    begins_at_zero: bool
    """Whether its producer raises its epoch with each transaction, so that without any state it begins at 0."""
    began_ms: int

    def take_in(self, epoch: int, sequence: int) -> None:
        """Another batch of the producer asks to be verified."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
