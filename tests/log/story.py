"""A random life of one partition log on a recording disk, with a note of what must be true after each step.

Every step is a real call of the log room. What the log should hold is kept in a model of its own: nothing is
read back from the files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from lamina.errors import StorageError
from lamina.log.directory import LogDirectory
from lamina.log.due_waiters import DueWaiters
from lamina.log.files import Disk
from lamina.log.flushing import Flusher, flush
from lamina.log.index_rebuild import IndexesLost
from lamina.log.leftovers import CLEANED
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.log.steps import run_steps
from lamina.log.transaction_index import AbortedTransaction
from lamina.records.batch import Codec, read_header
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig
from tests.log.building import close_later, expire

TOPIC, TOPIC_ID, NODE_ID, CLUSTER_ID = "t", bytes(range(16)), 1, "a-cluster"
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=700, segment_index_bytes=96, index_interval_bytes=150, file_delete_delay_ms=1000)


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    last_offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """What is true of the log between two steps."""

    lineage: tuple[Batch, ...] = ()
    """Every batch that was appended and not cut off again, whether retention or cleaning took it or not."""
    present: tuple[Batch, ...] = ()
    durable_end: int = 0
    """Everything below was flushed."""
    log_start_offset: int = 0
    durable_start: int = 0
    """The log start that the checkpoint on disk vouches for."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A step: its operations on the disk, and what was true before and after it."""

    step: str
    first_op: int
    end_op: int
    before: Known
    after: Known


@dataclass(frozen=True, slots=True)
class Rewritten:
    """New segments under ``.cleaned`` names, what they replace, and the batches they leave out."""

    new: list[Segment]
    old: list[Segment]
    gone: frozenset[Batch]


def run_inline(work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
    """What a thread does for the flusher, done at once."""
    try:
        work()
    except OSError as error:
        done(error)
    else:
        done(None)


def told_inline() -> DueWaiters:
    """All who wait are told at once; one that fails fails the test."""

    def failed() -> None:
        raise AssertionError("a waiter failed")

    return DueWaiters(lambda go_on: go_on(), failed)


def open_directory(path: str, disk: Disk) -> LogDirectory:
    directory = LogDirectory.open(path, node_id=NODE_ID, cluster_id=CLUSTER_ID, disk=disk)
    close_later(directory.release)
    return directory


def swap_in(log: PartitionLog, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
    run_steps(log.replace(new, old, now_ms))


class Story:
    def __init__(self, disk: Disk, path: str, rng: Random, *, compact: bool, count_ops: Callable[[], int]) -> None:
        self.disk = disk
        self.path = path
        self.rng = rng
        self.config = replace(CONFIG, compact=compact, delete=not compact)
        self.known = Known()
        self.moments: list[Moment] = []
        self.leader_epoch = 0
        self.now_ms = NOW_MS
        self.has_flusher = rng.random() < 0.4
        self._count_ops = count_ops
        self.steps: dict[str, Callable[[], None]] = {
            "append": self.append,
            "roll": self.roll,
            "flush": self.flush,
            "truncate": self.truncate,
            "truncate_fully": self.truncate_fully,
            "move_log_start": self.move_log_start,
            "write_checkpoints": self.write_checkpoints,
            "remove_due": self.remove_due,
            "stop_and_start": self.stop_and_start,
            "kill_and_start": self.kill_and_start,
            "delete_and_create": self.delete_and_create,
        } | ({"clean": self.clean} if compact else {"expire": self.expire})
        self.do("create", self.create)

    def do(self, step: str, action: Callable[[], None]) -> None:
        before, first_op = self.known, self._count_ops()
        action()
        if step != "delete_and_create":
            durable_end = max(self.known.durable_end, self.log.recovery_point)
            self.known = replace(self.known, durable_end=durable_end, log_start_offset=self.log.log_start_offset)
        self.moments.append(Moment(step, first_op, self._count_ops(), before, self.known))

    def live(self, steps: int) -> "Story":
        names = list(self.steps)
        weights = [{"append": 14, "roll": 3, "flush": 4, "clean": 5, "expire": 4}.get(name, 1) for name in names]
        for _ in range(steps):
            step = self.rng.choices(names, weights)[0]
            self.do(step, self.steps[step])
        return self

    def follow(self, script: Sequence[str]) -> "Story":
        for step in script:
            self.do(step, self.steps[step])
        return self

    # Opening and closing

    def create(self) -> None:
        self.directory = open_directory(self.path, self.disk)
        self._adopt(self.directory.create_partition(TOPIC, 0, TOPIC_ID, self.config, self.now_ms))

    def _adopt(self, log: PartitionLog) -> None:
        self.log = log
        self.flusher = Flusher(log, run_inline, told_inline()) if self.has_flusher else None

    def _start(self) -> None:
        self.directory = open_directory(self.path, self.disk)
        (log,) = self.directory.open_partitions(lambda _: self.config, self.now_ms)
        self._adopt(log)

    def stop_and_start(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self.directory.close()
        self.known = replace(self.known, durable_end=self.log.log_end_offset, durable_start=self.log.log_start_offset)

    def kill_and_start(self) -> None:
        """The process is gone, the page cache is not: nothing is lost, but the log is recovered."""
        self.log.close()
        self.directory.release()
        self._start()

    def delete_and_create(self) -> None:
        """The same topic again: what the checkpoints said of the old one must not speak for the new one."""
        gone = self.directory.delete_partition(TOPIC, 0)
        assert gone is not None
        self.disk.remove_tree(gone)
        self._adopt(self.directory.create_partition(TOPIC, 0, TOPIC_ID, self.config, self.now_ms))
        self.leader_epoch = 0
        self.known = Known()

    # Writing

    def append(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            data = self._next_batch()
            if self.rng.random() < 0.1:
                self.leader_epoch += 1
            placed = self.log.append(data, read_header(data), self.leader_epoch, self.now_ms)
            batch = Batch(placed.first_offset, placed.last_offset, bytes(data))
            self.known = replace(self.known, lineage=(*self.known.lineage, batch), present=(*self.known.present, batch))

    def _next_batch(self) -> bytearray:
        self.now_ms += self.rng.randint(-20, 40)
        producer_id = self.rng.choice([-1, -1, 1, 2, 3])
        producer = self.log.producers.producers.get(producer_id)
        if producer is not None and producer.current_txn_first_offset is not None and self.rng.random() < 0.5:
            return build_marker(
                self.rng.choice([ControlType.COMMIT, ControlType.ABORT]),
                offset=0,
                timestamp_ms=self.now_ms,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
            )
        count = self.rng.randint(1, 3)
        return build_batch(
            [Record(number, self.now_ms, b"k", self.rng.randbytes(self.rng.randint(0, 40))) for number in range(count)],
            codec=self.rng.choice(list(Codec)),
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=-1 if producer_id < 0 else (producer.last_sequence + 1 if producer is not None else 0),
            is_transactional=producer_id > 1,
        )

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def flush(self) -> None:
        end_offset = self.rng.randint(self.log.log_start_offset, self.log.log_end_offset)
        if self.rng.random() < 0.7:
            end_offset = self.log.log_end_offset
        if self.flusher is None:
            flush(self.log, end_offset)
        else:
            answers: list[StorageError | None] = []
            self.flusher.flush_to(end_offset, answers.append)
            if answers != [None]:
                raise answers[0] or AssertionError("nobody was told of the flush")

    def write_checkpoints(self) -> None:
        self.directory.write_recovery_points()
        self.directory.write_log_starts()
        self.known = replace(self.known, durable_start=self.log.log_start_offset)

    # Cutting

    def _cut(self, offset: int) -> None:
        """Where an index has to be made again first, what is left to do is done in a second attempt."""
        try:
            run_steps(self.directory.truncate(self.log, offset, self.now_ms))
        except IndexesLost:
            assert self.log.is_truncating
            run_steps(self.directory.truncate(self.log, self.log.log_end_offset, self.now_ms))

    def truncate(self) -> None:
        offset = self.rng.randint(max(self.log.log_end_offset - 12, 0), self.log.log_end_offset)
        is_below = offset < self.log.segments.first.base_offset
        self._cut(offset)
        if is_below:
            self.known = Known(durable_start=offset)
            return
        known = self.known
        self.known = Known(
            lineage=tuple(batch for batch in known.lineage if batch.last_offset < offset),
            present=tuple(batch for batch in known.present if batch.last_offset < offset),
            durable_end=min(known.durable_end, self.log.log_end_offset),
            durable_start=min(known.durable_start, self.log.log_end_offset),
        )

    def truncate_fully(self) -> None:
        offset = self.rng.randint(0, self.log.log_end_offset + 10)
        run_steps(self.directory.truncate_fully(self.log, offset, self.now_ms))
        self.known = Known(durable_start=offset)

    def move_log_start(self) -> None:
        self.log.advance_log_start(self.rng.randint(self.log.log_start_offset, self.log.log_end_offset))

    def expire(self) -> None:
        limit_bytes = self.rng.randint(0, self.log.size_bytes() // 2)
        self.log.configure(replace(self.config, retention_ms=-1, retention_bytes=limit_bytes))
        if self.rng.random() < 0.2:
            self.log.configure(replace(self.config, retention_ms=0))
        try:
            expire(self.log, self.now_ms + 10_000, self.log.log_end_offset)
        finally:
            self.log.configure(self.config)
        first = self.log.segments.first.base_offset
        self.known = replace(
            self.known, present=tuple(batch for batch in self.known.present if batch.base_offset >= first)
        )

    def remove_due(self) -> None:
        for path in self.log.take_due_paths(self.now_ms + 2000):
            self.disk.unlink(path)

    # Cleaning

    def clean(self) -> None:
        if len(self.log.segments) > 1:
            self.install(self.rewrite())

    def install(self, rewritten: Rewritten) -> None:
        swap_in(self.log, rewritten.new, rewritten.old, self.now_ms)
        present = tuple(batch for batch in self.known.present if batch not in rewritten.gone)
        self.known = replace(self.known, present=present)

    def rewrite(self) -> Rewritten:
        """Some closed segments again, without some batches that no producer needs."""
        closed = list(self.log.segments)[:-1]
        first = self.rng.randrange(len(closed))
        old = closed[first : first + self.rng.randint(1, 3)]
        end = self.log.segments[self.log.segments.number_of(old[-1].base_offset) + 1].base_offset
        inside = [batch for batch in self.known.present if old[0].base_offset <= batch.base_offset < end]
        kept = [batch for batch in inside if read_header(batch.data).producer_id >= 0 or self.rng.random() < 0.5]
        half = self.rng.randint(1, len(kept)) if kept and self.rng.random() < 0.4 else len(kept)
        aborted = [entry for segment in old for entry in segment.aborted.entries()]
        new = [self._cleaned(old[0].base_offset, kept[:half], aborted)]
        if kept[half:]:
            new.append(self._cleaned(kept[half].base_offset, kept[half:], aborted))
        return Rewritten(new, old, frozenset(inside) - frozenset(kept))

    def _cleaned(self, base_offset: int, batches: list[Batch], aborted: list[AbortedTransaction]) -> Segment:
        segment = Segment.create(self.disk, self.log.path, base_offset, self.log.shape, self.now_ms, suffix=CLEANED)
        for batch in batches:
            header = read_header(batch.data)
            segment.append(batch.data, len(batch.data), batch.last_offset, header.max_timestamp)
        for entry in aborted:
            if batches and batches[0].base_offset <= entry.last_offset <= batches[-1].last_offset:
                segment.aborted.append(entry)
        segment.seal()
        return segment
