"""One log directory: its partitions, and what its checkpoints say of them.

The checkpoints are read before the segments, so that they never claim more than was taken: a recovery point above
what the copy holds safely would make the next start believe it unchecked, a cleaner's offset above it would keep
records from being cleaned. A recovery point that went down meanwhile means that a log was cut: those partitions
are taken again. A mark of a clean stop counts only if the same one is still there at the end and no broker runs.
Must not know the metadata: which partitions are wanted is given.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from lamina.log import checkpoints
from lamina.log.backup.copier import BackupError, Copier, Step
from lamina.log.backup.partition import TRIES, Source, TakenLog, TakenSegment, take_partition
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN, NO_BROKER_EPOCH, read_clean_shutdown
from lamina.log.directory import KRAFT_METADATA, LOCK
from lamina.log.files import Disk, Entry
from lamina.log.identity import Identity, read_meta_properties
from lamina.log.names import parse_partition_directory, partition_directory
from lamina.log.offset_checkpoints import OffsetCheckpoints
from lamina.topic_partition import TopicPartition

LOGS = "logs"
"""Where a backup has its partitions, whichever log directory they are from."""


@dataclass(frozen=True, slots=True)
class TakenPartition:
    topic: str
    partition: int
    topic_id: bytes
    directory: int
    """The number of the log directory that it is from."""
    segments: list[TakenSegment]
    log_start_offset: int
    end_offset: int
    recovery_point: int
    high_watermark: int | None
    cleaner_offset: int | None
    damage: str | None = None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def linked_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments if segment.is_linked)


class DirectoryBackup:
    """A log directory that is being taken. Raises ``OSError`` when it cannot be read: it is offline, or not there."""

    def __init__(
        self, disk: Disk, path: str, number: int, is_held: Callable[[str], bool], pause: Callable[[], None]
    ) -> None:
        self._disk = disk
        self.path = path
        self._number = number
        self._is_held = is_held
        self._pause = pause
        entries = disk.scan(path)
        self.identity: Identity | None = read_meta_properties(disk, path)
        self._mark = self._find_mark(entries)
        self.offset_checkpoints = OffsetCheckpoints(disk, path)
        found = (parse_partition_directory(entry.name) for entry in entries if entry.is_dir)
        self.partitions = [key for key in found if key is not None and key[0] != KRAFT_METADATA]
        self.broker_epoch = NO_BROKER_EPOCH if self._mark is None else read_clean_shutdown(disk, path)

    def is_running(self) -> bool:
        return self._is_held(f"{self.path}/{LOCK}")

    def _find_mark(self, entries: list[Entry]) -> Entry | None:
        return None if self.is_running() else next((each for each in entries if each.name == CLEAN_SHUTDOWN), None)

    def is_still(self) -> bool:
        """Whether a clean stop left it and no broker has run since."""
        return self._mark is not None and self._find_mark(self._disk.scan(self.path)) == self._mark

    def estimate_bytes(self, key: TopicPartition, *, may_link: bool) -> tuple[int, int]:
        """How much a partition has, and how much of it will have to be copied, if nothing changes."""
        try:
            entries = [entry for entry in self._disk.scan(self._path_of(key)) if not entry.is_dir]
        except OSError:
            return 0, 0
        logs = [entry for entry in entries if entry.name.endswith(".log")]
        total_bytes = sum(entry.size_bytes for entry in logs)
        linked_bytes = 0
        if may_link:
            safe = self.offset_checkpoints.recovery_points.get(key, 0)
            linked_bytes = sum(
                entry.size_bytes for entry, following in pairwise(logs) if int(following.name[:20]) < safe
            )
        return total_bytes, sum(entry.size_bytes for entry in entries) - linked_bytes

    def take(
        self, copier: Copier, wanted: Mapping[TopicPartition, bytes]
    ) -> Generator[Step, None, dict[TopicPartition, TakenPartition]]:
        """Take these partitions, with their topics' ids; those that are not, or no more, here are left out."""
        taken: dict[TopicPartition, TakenPartition] = {}
        todo = list(wanted)
        for _ in range(TRIES):
            for key in todo:
                one = yield from self._take_one(copier, key, wanted[key])
                taken.pop(key, None)
                if one is not None:
                    taken[key] = one
            yield Step("partitions", self.path)
            before, self.offset_checkpoints = self.offset_checkpoints, OffsetCheckpoints(self._disk, self.path)
            todo = [key for key in taken if self._was_cut(before, key)]
            if not todo:
                return taken
        raise BackupError(f"{self.path}: its logs were cut again and again: try again later")

    def _was_cut(self, before: OffsetCheckpoints, key: TopicPartition) -> bool:
        return self.offset_checkpoints.recovery_points.get(key, 0) < before.recovery_points.get(key, 0)

    def _take_one(
        self, copier: Copier, key: TopicPartition, topic_id: bytes
    ) -> Generator[Step, None, TakenPartition | None]:
        recovery_point = self.offset_checkpoints.recovery_points.get(key, 0)
        is_still = self.is_still()
        source = Source(self._disk, self._path_of(key), topic_id, recovery_point, is_still, self.is_running)
        log = yield from take_partition(source, copier, f"{LOGS}/{partition_directory(*key)}", self._pause)
        return None if log is None else self._with_offsets(key, topic_id, log, is_still=is_still)

    def _with_offsets(self, key: TopicPartition, topic_id: bytes, log: TakenLog, *, is_still: bool) -> TakenPartition:
        """What the checkpoints said, made to fit what was taken."""
        log_start = self.offset_checkpoints.log_starts.get(key, 0)
        first = log.segments[0].base_offset if log.segments else log_start
        end_offset = max(log.end_offset, first)
        recovery_point = self.offset_checkpoints.recovery_points.get(key, log_start)
        if not is_still and log.segments:
            # The active segment has no indexes here: it is recovered from its beginning.
            recovery_point = min(recovery_point, log.segments[-1].base_offset)
        high_watermark = self.offset_checkpoints.high_watermarks.get(key)
        cleaner_offset = self.offset_checkpoints.cleaner_offsets.get(key)
        return TakenPartition(
            *key,
            topic_id,
            self._number,
            log.segments,
            min(max(log_start, first), end_offset),
            end_offset,
            min(recovery_point, end_offset),
            None if high_watermark is None else min(high_watermark, end_offset),
            None if cleaner_offset is None else min(cleaner_offset, end_offset),
            log.damage,
        )

    def _path_of(self, key: TopicPartition) -> str:
        return f"{self.path}/{partition_directory(*key)}"


def checkpoint_contents(partitions: list[TakenPartition]) -> dict[str, dict[TopicPartition, int]]:
    """The offset checkpoints of a log directory that holds these partitions, by their names."""
    return {
        checkpoints.RECOVERY_POINT: {one.key: one.recovery_point for one in partitions},
        checkpoints.LOG_START: {
            one.key: one.log_start_offset
            for one in partitions
            if one.log_start_offset > (one.segments[0].base_offset if one.segments else 0)
        },
        checkpoints.HIGH_WATERMARK: {
            one.key: one.high_watermark for one in partitions if one.high_watermark is not None
        },
        checkpoints.CLEANER: {one.key: one.cleaner_offset for one in partitions if one.cleaner_offset is not None},
    }
