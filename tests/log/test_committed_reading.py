"""A reader of committed records sees exactly them, whatever it reads at a time and wherever it begins.

The reader does as Kafka's clients do with the list of aborted transactions that comes with each answer.
"""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.records.batch import walk
from lamina.records.marker import ControlType, read_marker
from lamina.records.record import read_records
from tests.examples import examples
from tests.log.building import LIMIT_BYTES, LogBuilder, a_log

PRODUCERS = (1, 2, 3)
PLAIN = 0

steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from((PLAIN, *PRODUCERS)), st.integers(1, 3)),
        st.tuples(st.sampled_from(("commit", "abort")), st.sampled_from(PRODUCERS), st.just(0)),
        st.just(("roll", PLAIN, 0)),
    ),
    max_size=40,
)


@dataclass
class Written:
    """A log, and what of it is committed, as whoever wrote it knows."""

    builder: LogBuilder
    committed: set[int] = field(default_factory=set)
    open: dict[int, list[int]] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)

    def take(self, step: str, producer_id: int, count: int) -> None:
        end = self.builder.log.log_end_offset
        if step == "roll":
            self.builder.log.roll(self.builder.now_ms)
        elif step == "commit":
            self.builder.commit(producer_id)
            self.committed |= set(self.open.pop(producer_id, ()))
        elif step == "abort":
            self.builder.abort(producer_id)
            self.open.pop(producer_id, None)
        elif producer_id == PLAIN:
            self.builder.append(*[b"k=v"] * count)
            self.committed |= set(range(end, end + count))
        else:
            sequence = self.sequences.get(producer_id, 0)
            self.builder.append(
                *[b"k=v"] * count,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            )
            self.sequences[producer_id] = sequence + count
            self.open.setdefault(producer_id, []).extend(range(end, end + count))

    @property
    def last_stable_offset(self) -> int:
        return min((offsets[0] for offsets in self.open.values()), default=self.builder.log.log_end_offset)


def read_committed(written: Written, start: int, limit_bytes: int, bound: int) -> list[int]:
    log, offset, seen = written.builder.log, start, []
    while (lease := log.read(offset, limit_bytes, bound)) is not None:
        with lease:
            told = log.segments.aborted_in(lease, offset, bound)
            data = lease.read()
        began = offset
        waiting = sorted(told, key=lambda entry: entry.first_offset)
        skipped: set[int] = set()
        end = offset
        for position, header in walk(data):
            while waiting and waiting[0].first_offset <= header.last_offset:
                skipped.add(waiting.pop(0).producer_id)
            end = header.next_offset
            if header.is_control:
                marker = read_marker(data, position, header)
                if marker is not None and marker.control_type is ControlType.ABORT:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                records = read_records(data, position, header, LIMIT_BYTES)
                seen += [record.offset for record in records if record.offset >= began]
        assert not waiting, "an aborted transaction was told that lies behind what was read"
        assert all(entry.last_offset >= began for entry in told)
        assert end > offset
        offset = end
    return seen


@settings(max_examples=examples(150), deadline=None)
@given(steps, st.data())
def test_a_committed_reader_sees_exactly_what_was_committed(
    taken: list[tuple[str, int, int]], choose: st.DataObject
) -> None:
    with TemporaryDirectory() as directory:
        written = Written(a_log(Path(directory)))
        for step in taken:
            written.take(*step)
        bound = written.last_stable_offset
        start = choose.draw(st.integers(0, bound))
        limit_bytes = choose.draw(st.sampled_from([1, 100, 300, 1000, LIMIT_BYTES]))
        expected = [offset for offset in sorted(written.committed) if start <= offset < bound]
        assert read_committed(written, start, limit_bytes, bound) == expected
        written.builder.log.close()
