"""Random lives of a log, for the tests of compaction: what clients wrote, in which segments, with which transactions.

``Story`` is a little broker that keeps its log in memory; ``steps()`` are the things that may happen to it.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lamina.records.batch import Codec, read_header
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from tests.compaction.model import Abort, Pass, Segment

START_MS = 1_600_000_000_000


@dataclass
class Writer:
    """A producer, as the log knows it."""

    epoch: int = 0
    sequence: int = 0
    last_data_offset: int | None = None
    open_since: int | None = None


@dataclass
class Story:
    segments: list[Segment] = field(default_factory=lambda: [Segment(0)])
    writers: dict[int, Writer] = field(default_factory=dict)
    next_offset: int = 0
    now_ms: int = START_MS
    leader_epoch: int = 5

    # What clients do

    def write(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        *,
        producer: int | None = None,
        transactional: bool = False,
        codec: Codec = Codec.NONE,
        log_append_time: bool = False,
        has_headers: bool = False,
        timestamp_step: int = 1,
    ) -> None:
        headers = ((b"h", b"1"), (b"", None)) if has_headers else ()
        base = self.next_offset
        records = [
            Record(base + n, self.now_ms + n * timestamp_step, key, value, headers)
            for n, (key, value) in enumerate(pairs)
        ]
        fields: dict[str, Any] = {"codec": codec, "leader_epoch": self.leader_epoch}
        if log_append_time:
            fields["log_append_time_ms"] = self.now_ms + 3
        if producer is not None:
            writer = self.writers.setdefault(producer, Writer())
            transactional = transactional or writer.open_since is not None
            fields |= {
                "producer_id": producer,
                "producer_epoch": writer.epoch,
                "base_sequence": writer.sequence,
                "is_transactional": transactional,
            }
            writer.sequence += len(records)
            writer.last_data_offset = records[-1].offset
            if transactional and writer.open_since is None:
                writer.open_since = base
        self._append(bytes(build_batch(records, **fields)))

    def end(self, producer: int, *, commit: bool, bumps_epoch: bool = False) -> None:
        """A marker; one of a producer that has no transaction open is legal too."""
        writer = self.writers.setdefault(producer, Writer())
        if bumps_epoch:
            writer.epoch, writer.sequence, writer.last_data_offset = writer.epoch + 1, 0, None
        marker = build_marker(
            ControlType.COMMIT if commit else ControlType.ABORT,
            offset=self.next_offset,
            timestamp_ms=self.now_ms,
            producer_id=producer,
            producer_epoch=writer.epoch,
            coordinator_epoch=1,
            leader_epoch=self.leader_epoch,
        )
        since, writer.open_since = writer.open_since, None
        if since is not None and not commit:
            stable = min((w.open_since for w in self.writers.values() if w.open_since is not None), default=None)
            entry = Abort(producer, since, self.next_offset, self.next_offset + 1 if stable is None else stable)
            self.segments[-1].aborts.append(entry)
        self._append(bytes(marker))

    def roll(self) -> None:
        if self.segments[-1].batches or self.segments[-1].base_offset < self.next_offset:
            self.segments.append(Segment(self.next_offset))

    def skip(self, offsets: int) -> None:
        """A gap, as a leader's crash or an earlier cleaning may leave."""
        self.next_offset += offsets

    def _append(self, batch: bytes) -> None:
        self.segments[-1].batches.append(batch)
        self.next_offset = read_header(batch).next_offset

    # What a pass needs

    @property
    def first_uncleanable_offset(self) -> int:
        stable = min(
            (w.open_since for w in self.writers.values() if w.open_since is not None), default=self.next_offset
        )
        return max((s.base_offset for s in self.segments if s.base_offset <= stable), default=0)

    @property
    def aborts(self) -> list[Abort]:
        """Of all segments up to the log end (fact 50)."""
        return [abort for segment in self.segments for abort in segment.aborts]

    @property
    def cleanable(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.base_offset < self.first_uncleanable_offset]

    def pass_at(self, first_dirty_offset: int, delete_retention_ms: int, forgotten: frozenset[int]) -> Pass:
        """A pass now; of the producers in ``forgotten`` those without an open transaction have expired."""
        return Pass(
            now_ms=self.now_ms,
            delete_retention_ms=delete_retention_ms,
            first_dirty_offset=first_dirty_offset,
            end_offset=self.first_uncleanable_offset,
            producers={
                producer_id: (writer.epoch, writer.last_data_offset)
                for producer_id, writer in self.writers.items()
                if writer.open_since is not None or producer_id not in forgotten
            },
        )


KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"", b"\x00\x00\x00\x01", b"a long key of thirty-two bytes!!", None])
VALUES = st.sampled_from([None, None, b"", b"v", b"x" * 200])
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)
PRODUCERS = st.sampled_from([11, 12, 13])

WRITES = st.fixed_dictionaries(
    {"pairs": PAIRS},
    optional={
        "producer": PRODUCERS,
        "codec": st.sampled_from(Codec),
        "log_append_time": st.booleans(),
        "has_headers": st.booleans(),
        "timestamp_step": st.sampled_from([-700, 0, 1, 100_000]),
    },
)
TRANSACTIONAL_WRITES = st.fixed_dictionaries(
    {"pairs": PAIRS, "producer": PRODUCERS, "transactional": st.just(True)},
    optional={"codec": st.sampled_from(Codec)},
)
ENDS = st.fixed_dictionaries({"producer": PRODUCERS, "commit": st.booleans()}, optional={"bumps_epoch": st.booleans()})

Step = tuple[str, Any]


def _named(name: str, strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), strategy)


def writing_steps() -> st.SearchStrategy[Step]:
    """What may happen to a log between two passes."""
    return st.one_of(
        _named("write", WRITES),
        _named("write", TRANSACTIONAL_WRITES),
        _named("end", ENDS),
        _named("roll", st.just(None)),
        _named("skip", st.integers(1, 5)),
        _named("wait", st.sampled_from([1, 10, 1000, 100_000_000])),
    )


PASSES = st.fixed_dictionaries(
    {
        "delete_retention_ms": st.sampled_from([0, 10, 1000, 86_400_000]),
        "forgotten": st.frozensets(PRODUCERS),
        "dirty_from_start": st.booleans(),
        "segment_bytes": st.sampled_from([1, 400, 1000, 2**30]),
    }
)


def steps() -> st.SearchStrategy[list[Step]]:
    """A life with passes in it, ending in one."""
    one = st.tuples(st.lists(writing_steps(), max_size=16), _named("pass", PASSES)).map(lambda t: [*t[0], t[1]])
    return st.lists(one, min_size=1, max_size=4).map(lambda parts: [step for part in parts for step in part])


def take(story: Story, step: Step) -> None:
    """One step that is no pass."""
    name, argument = step
    match name:
        case "write":
            story.write(**argument)
        case "end":
            story.end(**argument)
        case "roll":
            story.roll()
        case "skip":
            story.skip(argument)
        case "wait":
            story.now_ms += argument
