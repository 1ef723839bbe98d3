"""What is decided of a batch by its header alone: aborted, retained though empty, a marker without data (facts 50-59).

One walk over the batches of a whole pass in log order. It needs headers, the type of each control record, the
aborted transactions and the active producers, never a data record: so it is cheap, and everything after it may run
side by side (fact 103). Must not look inside a batch.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.records.aborted import Aborted, AbortedTransactions
from lamina.records.marker import ControlType

DISCARDABLE = 1
"""A data batch of an aborted transaction; a marker none of whose data was met."""
DISCARD_RECORDS = 2
RETAIN_EMPTY = 4
"""Retained at least as a header."""


class LastData(NamedTuple):
    """An active producer (fact 57): its epoch, and the last offset of its last batch in it, if there is one."""

    epoch: int
    last_data_offset: int | None


class BatchSummary(NamedTuple):
    """What the header of a batch says."""

    last_offset: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    is_control: bool
    control_type: ControlType | None
    """Of a control batch that still has its record."""
    horizon_ms: int
    """``NEVER_MS`` where it has none."""


class Verdicts:
    """Judges the batches of one pass, in log order."""

    def __init__(
        self, aborted: Iterable[Aborted], producers: dict[int, LastData], first_uncleanable_offset: int, now_ms: int
    ) -> None:
        self._aborted = AbortedTransactions(aborted)
        self._producers = producers
        self._last_offset = first_uncleanable_offset - 1
        self._now_ms = now_ms
        self._met: set[int] = set()
        """Producers of whose aborted transaction a batch was met."""
        self._writing: set[int] = set()
        """Producers of whose transaction, not an aborted one, a batch was met."""
        self.kept_aborted: list[Aborted] = []
        """Entries for the new transaction index: of the marker judged last, if anything was added (fact 53)."""
        self.retained_offsets = frozenset(
            [self._last_offset, *(p.last_data_offset for p in producers.values() if p.last_data_offset is not None)]
        )
        """A batch that is neither transactional nor control needs no judging, unless its last offset is here."""

    def judge(self, batch: BatchSummary) -> int:
        """The batch's flags."""
        self._aborted.advance(batch.last_offset)
        if batch.is_control:
            discardable = self._judge_marker(batch)
            discards = discardable and batch.horizon_ms <= self._now_ms
        else:
            discards = discardable = self._judge_data(batch)
        return DISCARDABLE * discardable | DISCARD_RECORDS * discards | RETAIN_EMPTY * self._is_retained_empty(batch)

    def _judge_data(self, batch: BatchSummary) -> bool:
        if not batch.is_transactional:
            return False
        if self._aborted.ongoing(batch.producer_id) is None:
            self._writing.add(batch.producer_id)
            return False
        self._met.add(batch.producer_id)
        return True

    def _judge_marker(self, batch: BatchSummary) -> bool:
        match batch.control_type:
            case None:
                return True
            case ControlType.ABORT:
                entry = self._aborted.end(batch.producer_id)
                was_met = batch.producer_id in self._met
                self._met.discard(batch.producer_id)
                if entry is not None and was_met:
                    self.kept_aborted.append(entry)
                return not was_met
            case ControlType.COMMIT:
                was_met = batch.producer_id in self._writing
                self._writing.discard(batch.producer_id)
                return not was_met
        return False

    def _is_retained_empty(self, batch: BatchSummary) -> bool:
        if batch.last_offset == self._last_offset:
            return True
        producer = self._producers.get(batch.producer_id)
        if producer is None or batch.producer_id < 0:
            return False
        if producer.last_data_offset is not None:
            return batch.last_offset == producer.last_data_offset
        return batch.is_control and batch.producer_epoch == producer.epoch
