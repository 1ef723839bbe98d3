"""One partition's directory: its segments in order, and the files that speak of all of them.

Owns which segments the next start would recover, and the checks of snapshots, leader epochs, identity and
leftovers. Must not know other partitions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from lamina.log.epochs import FILE_NAME as LEADER_EPOCHS
from lamina.log.epochs import LeaderEpochs, parse_epochs
from lamina.log.files import TEMPORARY, Disk, Entry, read_file
from lamina.log.identity import PARTITION_METADATA, IdentityError, parse_partition_metadata
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.leftovers import CLEANED, DELETED, SWAP, segment_logs
from lamina.log.producer import Producer
from lamina.log.segment import ABORTED_INDEX, LOG
from lamina.log.snapshots import SNAPSHOT, unpack_snapshot
from lamina.log.verify.findings import Counts, Findings, Severity, Standing
from lamina.log.verify.records import Screen
from lamina.log.verify.segment import AT_RECOVERY, REBUILT_AT_START, RESTORE, Course, SegmentCheck

AT_START = "nothing: the next start finishes or removes it"


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a log begins and ends, for what the directory's checkpoints say of it."""

    first_offset: int
    end_offset: int
    topic_id: bytes | None


class PartitionCheck:
    def __init__(
        self,
        disk: Disk,
        path: str,
        standing: Standing,
        findings: Findings,
        counts: Counts,
        screen: Screen | None = None,
    ) -> None:
        self.path = path
        self._screen = screen
        self._disk = disk
        self._standing = standing
        self._findings = findings
        self._counts = counts
        self._recovered_from = 0

    def run(self, progress: Callable[[int], None]) -> Extent:
        self._counts.partitions += 1
        entries = [entry for entry in self._disk.scan(self.path) if not entry.is_dir]
        names = {entry.name for entry in entries}
        self._name_leftovers(names)
        logs = segment_logs(entries)
        topic_id = self._topic_id(names)
        self._recovered_from = self._recovery_start([int(entry.name[:20]) for entry in logs])
        first_offset = int(logs[0].name[:20]) if logs else self._standing.log_start_offset or 0
        course = Course(first_offset, self._epochs(names))
        snapshots = self._snapshots(names)
        if first_offset in snapshots:
            course.history.begin_with(snapshots[first_offset])
        elif first_offset:
            course.history.is_whole = False
        ends: list[int | None] = [int(following.name[:20]) for _, following in pairwise(logs)]
        for entry, end_offset in zip(logs, [*ends, None], strict=False):
            self._segment(entry, end_offset, names, course, progress)
            self._check_snapshots(snapshots, course, end_offset)
        self._check_ends(course, snapshots)
        return Extent(first_offset, course.next_offset, topic_id)

    def _recovery_start(self, bases: list[int]) -> int:
        """From which segment on the next start checks every batch; past the last one after a clean stop."""
        if not bases or self._standing.is_clean:
            return 2**63
        point = self._standing.recovery_point
        if point is None:
            return bases[-1]
        return max((base for base in bases if base <= point), default=bases[0])

    def _segment(
        self, entry: Entry, end_offset: int | None, names: set[str], course: Course, progress: Callable[[int], None]
    ) -> None:
        stem = f"{self.path}/{entry.name[:20]}"
        self._counts.segments += 1
        self._counts.size_bytes += entry.size_bytes
        check = SegmentCheck(
            self._disk,
            stem,
            self._standing,
            course,
            self._findings,
            self._counts,
            end_offset=end_offset,
            is_recovered=int(entry.name[:20]) >= self._recovered_from,
            screen=self._screen,
        )
        try:
            check.run(names, entry.size_bytes, progress)
        except FileNotFoundError:
            self._add(Severity.WARNING, stem + LOG, "it went away while it was verified", "verify again")
        except OSError as error:
            self._add(Severity.ERROR, stem + LOG, f"it cannot be read: {error.strerror}", "mend its rights or the disk")
        course.history.ended_below(course.next_offset)

    # Producer snapshots

    def _snapshots(self, names: set[str]) -> dict[int, list[Producer]]:
        found = {}
        for name in sorted(names):
            if name.endswith(SNAPSHOT) and len(name) == 20 + len(SNAPSHOT) and name[:20].isdecimal():
                data = self._read(name)
                try:
                    if data is not None:
                        found[int(name[:20])] = unpack_snapshot(data)
                except ValueError as error:
                    self._snapshot_fault(int(name[:20]), str(error))
        return found

    def _check_snapshots(self, snapshots: dict[int, list[Producer]], course: Course, end_offset: int | None) -> None:
        """The snapshots at the end of the segment that was just walked: only there the whole state is known."""
        at = course.next_offset if end_offset is None else end_offset
        if at in snapshots:
            disagreement = course.history.disagreement(at, snapshots[at])
            if disagreement is not None:
                self._snapshot_fault(at, disagreement)

    def _snapshot_fault(self, offset: int, what: str) -> None:
        recovered = offset > self._recovered_from
        self._add(
            Severity.WARNING if recovered else Severity.ERROR,
            f"{self.path}/{offset:020d}{SNAPSHOT}",
            what,
            AT_RECOVERY if recovered else REBUILT_AT_START,
        )

    # Files of the whole log

    def _epochs(self, names: set[str]) -> LeaderEpochs | None:
        if LEADER_EPOCHS not in names:
            advice = "stop the broker and delete .kafka_cleanshutdown: recovery makes it again from the log"
            self._add(Severity.WARNING, f"{self.path}/{LEADER_EPOCHS}", "the file is missing", advice)
            return None
        data = self._read(LEADER_EPOCHS)
        try:
            return None if data is None else LeaderEpochs(self._disk, self.path, parse_epochs(data))
        except ValueError as error:
            self._add(Severity.ERROR, f"{self.path}/{LEADER_EPOCHS}", str(error), "delete it, then let recovery run")
            return None

    def _check_ends(self, course: Course, snapshots: dict[int, list[Producer]]) -> None:
        """Nothing speaks of offsets behind the log's end."""
        severity = Severity.ERROR if self._standing.is_clean else Severity.WARNING
        end = course.next_offset
        for epoch in course.epochs.entries if course.epochs is not None else []:
            if epoch.start_offset > end:
                what = f"epoch {epoch.epoch} begins at {epoch.start_offset}, the log ends at {end}"
                self._add(
                    severity, f"{self.path}/{LEADER_EPOCHS}", what, AT_START if severity == "warning" else RESTORE
                )
        for offset in snapshots:
            if offset > end:
                what = f"it speaks of offsets up to {offset}, the log ends at {end}"
                self._add(severity, f"{self.path}/{offset:020d}{SNAPSHOT}", what, AT_START)

    def _topic_id(self, names: set[str]) -> bytes | None:
        path = f"{self.path}/{PARTITION_METADATA}"
        if PARTITION_METADATA not in names:
            self._add(Severity.WARNING, path, "the file is missing", "nothing: a broker that knows the id writes it")
            return None
        data = self._read(PARTITION_METADATA)
        try:
            return None if data is None else parse_partition_metadata(data)
        except IdentityError as error:
            self._add(Severity.ERROR, path, str(error), "write the topic's id into it again, or delete the file")
            return None

    def _name_leftovers(self, names: set[str]) -> None:
        for name in sorted(names):
            stem, dot, extension = name.rpartition(".")
            if name.endswith((CLEANED, SWAP, DELETED, TEMPORARY)):
                self._add(Severity.WARNING, f"{self.path}/{name}", "it was left behind by work that stopped", AT_START)
            elif dot + extension in (INDEX, TIME_INDEX, ABORTED_INDEX) and stem + LOG not in names:
                self._add(Severity.WARNING, f"{self.path}/{name}", "its log is not there", AT_START)

    def _read(self, name: str) -> bytes | None:
        try:
            return read_file(self._disk, f"{self.path}/{name}")
        except FileNotFoundError:
            return None
        except OSError as error:
            what = f"it cannot be read: {error.strerror}"
            self._add(Severity.ERROR, f"{self.path}/{name}", what, "mend its rights or the disk")
            return None

    def _add(self, severity: Severity, path: str, what: str, advice: str) -> None:
        self._findings.add(severity, path, what, advice)
