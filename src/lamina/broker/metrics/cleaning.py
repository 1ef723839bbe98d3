"""The samples of the cleaner's metrics (facts 99, 100 and 102).

Owns where each value comes from. Must not know any format.
"""

from collections import Counter
from collections.abc import Iterator

from lamina.broker.cleaner.history import Outcome
from lamina.broker.metrics.definitions import compaction as m
from lamina.broker.metrics.metric import Metric, Sample, Samples
from lamina.broker.metrics.sources import MetricSources

_PHASES = ("gather", "engine", "install", "verdicts", "keys", "rewrite", "throttled")


def collect_cleaning(sources: MetricSources) -> Iterator[tuple[Metric, Samples]]:
    cleaner, history, search = sources.cleaner, sources.cleaner.history, sources.cleaner.search
    last = [(record, record.manifest) for record in history.last_cleaned() if record.manifest is not None]
    before = sum(manifest.before.bytes for _, manifest in last)
    after = sum(manifest.after.bytes for _, manifest in last)
    yield m.CLEANER_ENGINE_MISSING, _one(cleaner.why_not() is not None)
    yield m.CLEANER_COMPACTED_PARTITIONS, _one(len(search.compacted()))
    yield m.CLEANER_DEAD, _one(cleaner.is_dead)
    yield m.CLEANER_OPEN_PASSES, _one(cleaner.open_passes)
    yield m.CLEANER_MAX_DIRTY_PERCENT, _one(int(100 * search.max_dirty_ratio))
    yield m.CLEANER_TIME_SINCE_LOOK, _one(max(sources.clocks.now_ms() - search.searched_at_ms, 0) / 1000)
    yield m.CLEANER_MAX_DELAY, _one(search.max_overdue_ms / 1000)
    yield m.CLEANER_MAX_CLEAN_TIME, _one(max((record.seconds.total for record, _ in last), default=0.0))
    yield m.CLEANER_RECOPY_PERCENT, _one(100 * after // before if before else 0)
    yield m.CLEANER_BUFFER_PERCENT, _one(int(max((record.buffer_percent for record, _ in last), default=0)))
    partitions, size_bytes = _uncleanable(sources)
    paths = [directory.path for directory in sources.directories]
    yield m.CLEANER_UNCLEANABLE_PARTITIONS, [Sample((path,), partitions[path]) for path in paths]
    yield m.CLEANER_UNCLEANABLE_BYTES, [Sample((path,), size_bytes[path]) for path in paths]
    yield m.CLEANER_PASSES, [Sample((outcome.value,), history.passes[outcome]) for outcome in Outcome]
    yield m.CLEANER_READ_BYTES, _one(history.read_bytes)
    yield m.CLEANER_WRITTEN_BYTES, _one(history.written_bytes)
    yield m.CLEANER_READ_RECORDS, _one(history.read_records)
    yield m.CLEANER_WRITTEN_RECORDS, _one(history.written_records)
    yield m.CLEANER_PHASE_SECONDS, [Sample((phase,), history.phase_seconds[phase]) for phase in _PHASES]


def _one(value: float) -> Samples:
    return (Sample((), value),)


def _uncleanable(sources: MetricSources) -> tuple[Counter[str], Counter[str]]:
    """How many there are and how many bytes of them could be cleaned, by directory."""
    partitions: Counter[str] = Counter()
    size_bytes: Counter[str] = Counter()
    for key in sources.cleaner.failed_passes.uncleanable():
        partition, directory = sources.partitions.find(*key), sources.directories.of.get(key)
        if partition is None or directory is None:
            continue
        partitions[directory.path] += 1
        try:
            size_bytes[directory.path] += sources.cleaner.search.inspect(partition).cleanable.cleanable_bytes
        except Exception:
            continue  # It cannot be read.
    return partitions, size_bytes
