"""One segment: every batch of its log, and its three indexes against them.

Owns the order of the checks in a segment and what each finding advises. What reaches over segments comes in a
:class:`Course`, which the segments of a log hand on. Must not know directories.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from lamina.errors import KafkaError, MessageTooLarge
from lamina.log.epochs import LeaderEpochs
from lamina.log.files import Disk, File, read_file
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.scan import BadBatch
from lamina.log.segment import ABORTED_INDEX, LOG
from lamina.log.transaction_index import AbortedTransaction, unpack_aborted
from lamina.log.verify.findings import Counts, Findings, Severity, Standing
from lamina.log.verify.indexes import Fault, OffsetIndexCheck, Tail, TimeIndexCheck
from lamina.log.verify.records import Screen, record_fault
from lamina.log.verify.transactions import AbortedIndexCheck, ProducerHistory
from lamina.log.verify.walk import MAX_RECORDS_BYTES, Walked, records_of, walk_batches, whole_batch
from lamina.records.batch import MAX_RELATIVE_OFFSET, NO_LEADER_EPOCH
from lamina.records.marker import read_marker

RESTORE = "take the partition from another replica or a backup: nothing here can make these bytes again"
REBUILT_AT_START = "delete the file while no broker runs: the next start makes it again from the log"
AT_RECOVERY = "nothing: the recovery at the next start repairs it"


_Check = TypeVar("_Check", OffsetIndexCheck, TimeIndexCheck)


@dataclass(slots=True)
class Course:
    """What one segment hands to the next."""

    next_offset: int
    epochs: LeaderEpochs | None
    """The leader epochs of the checkpoint; ``None`` when it says nothing."""
    history: ProducerHistory = field(default_factory=ProducerHistory)
    is_behind_bad_batch: bool = False
    """Whether the last batch could not be read, so that what follows it says nothing of a gap."""


class SegmentCheck:
    def __init__(
        self,
        disk: Disk,
        stem: str,
        standing: Standing,
        course: Course,
        findings: Findings,
        counts: Counts,
        *,
        end_offset: int | None,
        is_recovered: bool,
        screen: Screen | None = None,
    ) -> None:
        """``end_offset`` is where the next segment begins, ``None`` for the active one; ``is_recovered`` says that
        the next start goes through this segment and makes its indexes again."""
        self.path = stem + LOG
        self.base_offset = int(stem[-20:])
        self._disk = disk
        self._stem = stem
        self._standing = standing
        self._course = course
        self._findings = findings
        self._counts = counts
        self._end_offset = end_offset
        self._is_recovered = is_recovered
        self._screen = screen
        self._torn: Walked | BadBatch | None = None
        self._is_readable = True

    def run(self, names: set[str], size_bytes: int, progress: Callable[[int], None]) -> None:
        with ExitStack() as opened:
            file = self._disk.open(self.path)
            opened.callback(file.close)
            offsets = self._open_index(INDEX, names, OffsetIndexCheck, opened)
            times = self._open_index(TIME_INDEX, names, TimeIndexCheck, opened)
            self._walk(file, size_bytes, offsets, times, self._open_aborted(names), progress)
            self._report_last(size_bytes)
            if self._end_offset is None:
                self._course.next_offset = max(self._course.next_offset, self.base_offset)
            tail = Tail(self._course.next_offset, is_sealed=not self._is_recovered)
            for extension, check in ((INDEX, offsets), (TIME_INDEX, times)):
                if check is not None:
                    self._end_index(extension, check, tail)

    # The log

    def _walk(
        self,
        file: File,
        size_bytes: int,
        offsets: OffsetIndexCheck | None,
        times: TimeIndexCheck | None,
        aborted: AbortedIndexCheck,
        progress: Callable[[int], None],
    ) -> None:
        try:
            for batch in walk_batches(file, size_bytes):
                self._report_torn()
                if batch.fault is not None:
                    self._torn = batch
                else:
                    self._check_batch(file, batch, aborted)
                    if self._is_readable and offsets is not None:
                        offsets.batch(batch.position, batch.header)
                    if self._is_readable and times is not None:
                        times.batch(batch.header)
                progress(batch.header.size_bytes)
        except BadBatch as bad:
            self._report_torn()
            self._torn = bad

    def _check_batch(self, file: File, batch: Walked, aborted: AbortedIndexCheck) -> None:
        header = batch.header
        self._counts.batches += 1
        self._counts.records += header.record_count
        in_place = self._check_place(batch)
        self._check_epoch(batch)
        try:
            fault = self._record_fault(file, batch)
            marker = read_marker(batch.data, 0, header) if header.is_control else None
        except MessageTooLarge as error:
            self._warn(f"{error}: its records were not looked at", "nothing: only its CRC was verified", batch)
            self._course.history.forget()
            return
        except KafkaError as error:
            self._error(f"the CRC is right, but {error}", RESTORE, batch)
            self._course.history.forget()
            return
        if fault is not None:
            self._error(f"the CRC is right, but {fault}", RESTORE, batch)
        if in_place:
            history = self._course.history
            expected = history.batch(header, marker)
            wrong = aborted.batch(header, marker, expected, is_whole=history.is_whole)
            if wrong is not None:
                self._index_fault(ABORTED_INDEX, Fault(wrong, 0, header.base_offset))

    def _record_fault(self, file: File, batch: Walked) -> str | None:
        if self._screen is not None and self._screen(whole_batch(file, batch), batch.header, MAX_RECORDS_BYTES):
            return None
        return record_fault(batch.header, records_of(file, batch))

    def _check_place(self, batch: Walked) -> bool:
        """Offsets grow within and across segments, and stay where the index can say them."""
        header, expected = batch.header, self._course.next_offset
        end = self._end_offset
        if header.base_offset < expected:
            self._error(f"offset {header.base_offset} comes after {expected - 1}", RESTORE, batch)
            return False
        if header.last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            self._error(f"offset {header.last_offset} is too far from the segment's base", RESTORE, batch)
            return False
        if end is not None and header.last_offset >= end:
            self._error(
                f"offset {header.last_offset} belongs to the next segment, which begins at {end}", RESTORE, batch
            )
            return False
        if header.base_offset > expected and not self._course.is_behind_bad_batch:
            self._gap(expected, batch)
        self._course.is_behind_bad_batch = False
        self._course.next_offset = header.next_offset
        return True

    def _gap(self, expected: int, batch: Walked) -> None:
        self._course.history.is_whole = False
        cleaned = self._standing.cleaned_offset
        if cleaned is not None and batch.header.base_offset > cleaned:
            self._warn(
                f"offsets {expected} to {batch.header.base_offset - 1} are missing, and the cleaner did not get here",
                "compare with another replica: only cleaning leaves such gaps",
                batch,
            )

    def _check_epoch(self, batch: Walked) -> None:
        header, epochs = batch.header, self._course.epochs
        if epochs is None or (self._is_recovered and header.leader_epoch > epochs.latest):
            # What was not flushed need not be in the checkpoint yet.
            return
        log_start = self._standing.log_start_offset
        for offset in (header.base_offset, header.last_offset):
            said = epochs.epoch_at(offset)
            is_trimmed = said < 0 and (log_start is None or offset < log_start)
            if said == header.leader_epoch or (is_trimmed and header.leader_epoch >= NO_LEADER_EPOCH):
                continue
            self._add(
                Severity.WARNING if self._is_recovered else Severity.ERROR,
                f"its leader epoch is {header.leader_epoch}, leader-epoch-checkpoint says {said} at {offset}",
                AT_RECOVERY if self._is_recovered else RESTORE,
                batch,
            )
            return

    # A bad batch: at the very end it may be the half of a write that a crash cut short

    def _report_torn(self) -> None:
        """Another batch follows the bad one, so it was no torn write."""
        bad, self._torn = self._torn, None
        if bad is not None:
            self._course.history.forget()
            self._course.is_behind_bad_batch = True
            self._is_readable = False
            self._error(_reason(bad), RESTORE, bad)

    def _report_last(self, size_bytes: int) -> None:
        bad = self._torn
        if bad is not None and self._is_recovered and self._end_offset is None:
            cut_bytes = size_bytes - bad.position
            self._warn(f"{_reason(bad)}: {cut_bytes} bytes would be cut at recovery", AT_RECOVERY, bad)
        else:
            self._report_torn()

    # Indexes

    def _open_index(
        self, extension: str, names: set[str], check_type: type[_Check], opened: ExitStack
    ) -> _Check | None:
        name = f"{self.base_offset:020d}{extension}"
        if name not in names:
            self._index_fault(extension, Fault("the file is missing", 0, None))
            return None
        report = partial(self._index_fault, extension)
        try:
            check = check_type(self._disk, self._stem + extension, self.base_offset, report)
        except OSError as error:
            self._index_fault(extension, Fault(f"it cannot be read: {error.strerror}", 0, None))
            return None
        opened.callback(check.close)
        return check

    def _open_aborted(self, names: set[str]) -> AbortedIndexCheck:
        entries: list[AbortedTransaction] = []
        if f"{self.base_offset:020d}{ABORTED_INDEX}" in names:
            try:
                entries = unpack_aborted(read_file(self._disk, self._stem + ABORTED_INDEX))
            except OSError as error:
                self._index_fault(ABORTED_INDEX, Fault(f"it cannot be read: {error.strerror}", 0, None))
            except ValueError as error:
                self._index_fault(ABORTED_INDEX, Fault(str(error), 0, None))
        check = AbortedIndexCheck(entries)
        end_offset = self.base_offset + MAX_RELATIVE_OFFSET + 1 if self._end_offset is None else self._end_offset
        fault = check.shape_fault(self.base_offset, end_offset)
        if fault is not None:
            self._index_fault(ABORTED_INDEX, Fault(fault, 0, None))
        return check

    def _index_fault(self, extension: str, fault: Fault) -> None:
        severity, advice = Severity.ERROR, REBUILT_AT_START
        if self._is_recovered:
            severity, advice = Severity.WARNING, AT_RECOVERY
        elif extension == ABORTED_INDEX:
            advice = "stop the broker and delete .kafka_cleanshutdown and the recovery points: recovery makes it again"
        self._findings.add(
            severity, self._stem + extension, fault.what, advice, position=fault.position, offset=fault.offset
        )

    def _end_index(self, extension: str, check: OffsetIndexCheck | TimeIndexCheck, tail: Tail) -> None:
        in_motion = self._standing.is_running and self._end_offset is None
        if self._is_readable and not in_motion:
            check.end(tail)
        if check.padding_bytes and self._is_recovered and not in_motion:
            what = f"{check.padding_bytes} preallocated bytes would be cut at recovery"
            self._findings.add(Severity.WARNING, self._stem + extension, what, AT_RECOVERY)

    def _error(self, what: str, advice: str, batch: Walked | BadBatch) -> None:
        self._add(Severity.ERROR, what, advice, batch)

    def _warn(self, what: str, advice: str, batch: Walked | BadBatch) -> None:
        self._add(Severity.WARNING, what, advice, batch)

    def _add(self, severity: Severity, what: str, advice: str, batch: Walked | BadBatch) -> None:
        offset = self._course.next_offset if isinstance(batch, BadBatch) else batch.header.base_offset
        self._findings.add(severity, self.path, what, advice, position=batch.position, offset=offset)


def _reason(bad: Walked | BadBatch) -> str:
    return bad.reason if isinstance(bad, BadBatch) else bad.fault or ""
