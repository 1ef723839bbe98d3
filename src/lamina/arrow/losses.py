"""Records that were asked for and are not there any more: an error, or a warning where that is tolerated.

Owns the two sentences. Must not know how a loss was noticed.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from lamina.arrow.errors import DataLoss

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
