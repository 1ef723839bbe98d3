"""Producers and transactions as the batches of a log tell them, held against snapshots and transaction indexes.

Cleaning and retention take batches away that a snapshot or an index still speaks of; so once a log has a gap
the batches are believed only as far as they contradict. Must not know files.
"""

from bisect import bisect_left
from collections.abc import Iterable

from lamina.log.producer import Producer
from lamina.log.producer_replay import record_producer
from lamina.log.producer_states import ProducerStates
from lamina.log.transaction_index import AbortedTransaction
from lamina.records.batch import BatchHeader
from lamina.records.marker import ControlType, Marker


class ProducerHistory:
    """What the batches up to here say of their producers."""

    def __init__(self) -> None:
        self.is_whole = True
        """Whether no batch is known to be missing."""
        self._states = ProducerStates()

    def begin_with(self, producers: Iterable[Producer]) -> None:
        """The state where the log starts, from the snapshot at its first segment."""
        for producer in producers:
            self._states.restore(producer)

    def batch(self, header: BatchHeader, marker: Marker | None) -> AbortedTransaction | None:
        """Take a batch into account. Returns what its segment's transaction index has to say of it."""
        # A header-only batch stands for records that are gone (fact 73): no reader can see them, aborted or not.
        if header.producer_id < 0 or (not header.record_count and not header.is_control):
            return None
        return record_producer(self._states, header, header.base_offset, marker)

    def forget(self) -> None:
        """A batch could not be read; it may have begun or ended anything."""
        self._states.clear()
        self.is_whole = False

    def ended_below(self, offset: int) -> None:
        """Forget what only an earlier part of the log needed."""
        self._states.high_watermark_moved(offset)

    def disagreement(self, offset: int, producers: Iterable[Producer]) -> str | None:
        """What a snapshot at ``offset`` says that the batches below it contradict."""
        for said in producers:
            began = said.current_txn_first_offset
            reached = said.last_data_offset if began is None else max(said.last_data_offset, began)
            if reached >= offset:
                return f"producer {said.producer_id} is said to have written offset {reached}"
            seen = self._states.producers.get(said.producer_id)
            sentence = None if seen is None else _disagreement(said, seen)
            if sentence is not None:
                return f"producer {said.producer_id} {sentence}"
        return None


def _disagreement(said: Producer, seen: Producer) -> str | None:
    if seen.epoch > said.epoch:
        return f"has epoch {said.epoch}, the log has a batch with epoch {seen.epoch}"
    if seen.epoch == said.epoch and seen.batches:
        if seen.last_data_offset > said.last_data_offset:
            return f"ends at offset {said.last_data_offset}, the log has a batch that ends at {seen.last_data_offset}"
        if seen.last_data_offset == said.last_data_offset and seen.last_sequence != said.last_sequence:
            return f"has sequence {said.last_sequence}, the log has {seen.last_sequence} at {seen.last_data_offset}"
    began, began_in_log = said.current_txn_first_offset, seen.current_txn_first_offset
    if began is not None and began_in_log is not None and began > began_in_log:
        return f"is said to have a transaction open since {began}, the log has one since {began_in_log}"
    return None


class AbortedIndexCheck:
    """One segment's transaction index against the abort markers in the segment."""

    def __init__(self, entries: list[AbortedTransaction]) -> None:
        self._by_marker = {entry.last_offset: entry for entry in entries}
        self._markers = sorted(self._by_marker)
        self._entries = entries

    def shape_fault(self, base_offset: int, end_offset: int) -> str | None:
        """What no index of the segment ``[base_offset, end_offset)`` can say."""
        last_marker = -1
        for number, entry in enumerate(self._entries):
            if entry.last_offset <= last_marker:
                return f"entry {number}: marker {entry.last_offset} does not follow {last_marker}"
            if not base_offset <= entry.last_offset < end_offset:
                return f"entry {number}: marker {entry.last_offset} is not in this segment"
            if not 0 <= entry.first_offset <= entry.last_offset or entry.producer_id < 0:
                return f"entry {number}: producer {entry.producer_id} from offset {entry.first_offset} cannot be"
            if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
                return f"entry {number}: the last stable offset {entry.last_stable_offset} cannot be"
            last_marker = entry.last_offset
        return None

    def batch(
        self, header: BatchHeader, marker: Marker | None, expected: AbortedTransaction | None, *, is_whole: bool
    ) -> str | None:
        """What the index says wrongly of this batch. ``expected`` is the entry that the batches ask for."""
        if not header.is_control:
            return self._data_batch(header)
        entry = self._by_marker.get(header.base_offset)
        if entry is None:
            return None if expected is None else f"the abort at offset {header.base_offset} is missing"
        is_abort = marker is None or marker.control_type is ControlType.ABORT
        if not is_abort or entry.producer_id != header.producer_id:
            return f"offset {header.base_offset} is no abort of producer {entry.producer_id}"
        if expected is not None and entry.first_offset > expected.first_offset:
            return f"the transaction aborted at {entry.last_offset} began at {expected.first_offset}"
        if is_whole and entry != expected:
            return (
                f"the abort at offset {entry.last_offset} is {tuple(entry)}, the log says {expected and (*expected,)}"
            )
        return None

    def _data_batch(self, header: BatchHeader) -> str | None:
        number = bisect_left(self._markers, header.base_offset)
        if number < len(self._markers) and self._markers[number] <= header.last_offset:
            return f"offset {self._markers[number]} is data, not an abort marker"
        return None
