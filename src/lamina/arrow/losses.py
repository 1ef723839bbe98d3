"""Records that were asked for and are not there any more: an error, or a warning where that is tolerated.

A warning too where they are not there yet. Owns these sentences. Must not know how a loss was noticed.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lamina.arrow.errors import DataLoss
from lamina.topic_partition import TopicPartition, name_of

logger = logging.getLogger(__name__)


class Loss(NamedTuple):
    partition: str
    """As people know it: ``orders-0``."""
    reason: str
    start: int
    """The first offset that is not read."""
    end: int | None = None
    """The first that is read again; unknown where the partition is gone."""
    record_count: int | None = None
    """Where single records between the two are lost, and not all."""

    @property
    def skipped(self) -> str:
        if self.record_count is not None:
            return f"skipped {self.record_count} records of {self.partition}"
        if self.end is None:
            return f"skipped {self.partition} from offset {self.start} on"
        if self.end == self.start:
            return "skipped nothing"
        if self.end - self.start == 1:
            return f"skipped offset {self.start} of {self.partition}"
        return f"skipped offsets {self.start} to {self.end - 1} of {self.partition}"


OnLoss = Callable[[Loss], None]


def fail(loss: Loss, advice: str = "") -> None:
    raise DataLoss(f"data loss: {loss.reason}{advice}") from None


def warn(loss: Loss) -> None:
    """Where nothing is configured, Python writes it to stderr, which Spark keeps for the driver and each executor."""
    logger.warning("data loss: %s; %s", loss.reason, loss.skipped)


def warn_of_nothing(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    """Of ranges that begin behind their end: who mistyped an offset would take no rows for an empty topic."""
    for where, start in starts.items():
        if start > ends[where]:
            logger.warning("%s is read from offset %d to %d: nothing is there", name_of(where), start, ends[where])
