"""The last passes, with their figures (facts 101 and 102), and what all passes since the start add up to.

Must not know how a pass is made.
"""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from enum import StrEnum

from lamina.cleaning.contract import Counts, Manifest, Plan
from lamina.topic_partition import TopicPartition

REMEMBERED_PASSES = 1000
_MB = 1024 * 1024
_KEY_BYTES = 24


class Outcome(StrEnum):
    CLEANED = "cleaned"
    FAILED = "failed"
    UNCLEANABLE = "uncleanable"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """Where the time of a pass went, as the broker saw it; the job's own phases are in its manifest."""

    gather: float
    engine: float
    install: float

    @property
    def total(self) -> float:
        return self.gather + self.engine + self.install


@dataclass(frozen=True, slots=True)
class PassRecord:
    number: int
    topic: str
    partition: int
    plan_id: str
    outcome: Outcome
    reason: str
    """Why it came to nothing; empty where it did not."""
    is_manual: bool
    began_ms: int
    ended_ms: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    source_bytes: int
    memory_limit_bytes: int
    seconds: PhaseSeconds
    manifest: Manifest | None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def buffer_percent(self) -> float:
        """How much of a pass's memory its keys would take at what Kafka takes for one (fact 36)."""
        return 0.0 if self.manifest is None else 100 * self.manifest.keys * _KEY_BYTES / self.memory_limit_bytes


class History:
    def __init__(self) -> None:
        self.records: deque[PassRecord] = deque(maxlen=REMEMBERED_PASSES)
        self.last_number = 0
        self.passes: Counter[Outcome] = Counter()
        self.phase_seconds: defaultdict[str, float] = defaultdict(float)
        """By phase; the job's as it tells them."""
        self.read_bytes = 0
        self.written_bytes = 0
        self.read_records = 0
        self.written_records = 0
        self._last: dict[TopicPartition, PassRecord] = {}

    def add(
        self,
        plan: Plan,
        outcome: Outcome,
        reason: str,
        *,
        is_manual: bool,
        began_ms: int,
        ended_ms: int,
        seconds: PhaseSeconds,
        manifest: Manifest | None,
    ) -> PassRecord:
        self.last_number += 1
        record = PassRecord(
            number=self.last_number,
            topic=plan.topic,
            partition=plan.partition,
            plan_id=plan.plan_id,
            outcome=outcome,
            reason=reason,
            is_manual=is_manual,
            began_ms=began_ms,
            ended_ms=ended_ms,
            first_dirty_offset=plan.first_dirty_offset,
            first_uncleanable_offset=plan.first_uncleanable_offset,
            source_bytes=plan.source_bytes,
            memory_limit_bytes=plan.memory_limit_bytes,
            seconds=seconds,
            manifest=manifest,
        )
        self.records.append(record)
        self._last[record.key] = record
        self.passes[outcome] += 1
        self._count_seconds(record)
        if manifest is not None:
            self.read_bytes += manifest.bytes_read
            self.written_bytes += manifest.bytes_written
            self.read_records += manifest.before.records
            self.written_records += manifest.after.records
        return record

    def _count_seconds(self, record: PassRecord) -> None:
        phases = {"gather": record.seconds.gather, "engine": record.seconds.engine, "install": record.seconds.install}
        if record.manifest is not None:
            said = record.manifest.seconds
            phases |= {"verdicts": said.verdicts, "keys": said.keys, "rewrite": said.rewrite}
            phases |= {"throttled": said.throttled}
        for name, seconds in phases.items():
            self.phase_seconds[name] += seconds

    def last_of(self, key: TopicPartition) -> PassRecord | None:
        return self._last.get(key)

    def forget(self, key: TopicPartition) -> None:
        self._last.pop(key, None)

    def last_cleaned(self) -> list[PassRecord]:
        """The last pass of each partition, of those that were cleaned."""
        return [record for record in self._last.values() if record.outcome is Outcome.CLEANED]


def describe(record: PassRecord) -> str:
    """What a finished pass says of itself in the log, on one line. Percents are of the pass's whole time (fact 101)."""
    manifest = record.manifest
    assert manifest is not None
    before, after, said, total = manifest.before, manifest.after, manifest.seconds, record.seconds.total
    what = f"{record.topic}-{record.partition}: cleaned offsets [{record.first_dirty_offset}, {manifest.end_offset})"
    if before.bytes < _MB:
        # Rates and shares of so little say nothing.
        return (
            f"{what} in {total:.1f} s: {_counted(before.records, 'record')} of {before.bytes} bytes before, "
            f"{_counted(after.records, 'record')} of {after.bytes} bytes after"
        )
    return (
        f"{what}: "
        f"{before.bytes / _MB:.1f} MB processed in {total:.1f} s, {_rate(before.bytes, total)} MB/s; "
        f"{_counted(manifest.keys, 'key')} found in {_work(manifest.bytes_read - before.bytes, said.keys, total)}, "
        f"which would fill {record.buffer_percent:.1f} % of the memory for them; "
        f"rewritten: {_work(manifest.bytes_written, said.rewrite, total)}; throttled {said.throttled:.1f} s; "
        f"start: {_size(before)}; end: {_size(after)}; "
        f"{_less(before.bytes, after.bytes)} % smaller, {_less(before.records, after.records)} % fewer records"
    )


def _size(counts: Counts) -> str:
    return (
        f"{counts.bytes / _MB:.1f} MB, {_counted(counts.records, 'record')} in {_counted(counts.segments, 'segment')}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _work(size_bytes: int, seconds: float, total: float) -> str:
    share = 100 * seconds / total if total > 0 else 0.0
    return f"{size_bytes / _MB:.1f} MB, {seconds:.1f} s, {_rate(size_bytes, seconds)} MB/s, {share:.1f} % of the time"


def _rate(size_bytes: int, seconds: float) -> str:
    return f"{size_bytes / _MB / seconds:.1f}" if seconds > 0 else "-"


def _less(before: int, after: int) -> str:
    return f"{100 * (before - after) / before:.1f}" if before else "0.0"
