"""The whole log against the simplest model there is: a list of batches.

Random appends, rolls, truncations, moves of the start, retention, replacements, clean and unclean restarts; in
between every offset is read with random bounds.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lamina.errors import OffsetOutOfRange
from lamina.log.flushing import flush
from lamina.log.steps import run_steps
from lamina.records.batch import read_header
from tests.examples import examples
from tests.log.building import NOW_MS, a_batch, a_log, expire, truncate_log


class ModelBatch(NamedTuple):
    base_offset: int
    last_offset: int
    data: bytes


class LogAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scratch = TemporaryDirectory()
        self.builder = a_log(
            Path(self.scratch.name), segment_bytes=600, index_interval_bytes=100, retention_ms=-1, segment_ms=10**15
        )
        self.batches: list[ModelBatch] = []
        self.start = 0
        self.end = 0

    def teardown(self) -> None:
        self.builder.log.close()
        self.scratch.cleanup()

    # Changing the log and the model alike

    @rule(count=st.integers(1, 4), size=st.integers(0, 200), age_ms=st.integers(0, 1000))
    def append(self, count: int, size: int, age_ms: int) -> None:
        texts = [b"k=" + b"v" * size] * count
        appended = self.builder.append(*texts, timestamp=NOW_MS - age_ms)
        assert (appended.first_offset, appended.last_offset) == (self.end, self.end + count - 1)
        data = a_batch(*texts, timestamp=NOW_MS - age_ms, base_offset=self.end, leader_epoch=0)
        self.batches.append(ModelBatch(self.end, self.end + count - 1, bytes(data)))
        self.end += count

    @rule(gap=st.integers(0, 20), counts=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def follow(self, gap: int, counts: list[int]) -> None:
        """Batches from a leader, perhaps from behind a gap that its cleaner left."""
        data = b""
        for count in counts:
            batch = a_batch(*[b"f=v"] * count, base_offset=self.end + gap, leader_epoch=0)
            header = read_header(batch)
            self.batches.append(ModelBatch(header.base_offset, header.last_offset, bytes(batch)))
            self.end = header.next_offset
            data += batch
        self.builder.log.append_as_follower(data, NOW_MS)

    @rule()
    def roll(self) -> None:
        self.builder.log.roll(NOW_MS)

    @rule(share=st.floats(0, 1.1))
    def truncate(self, share: float) -> None:
        offset = int(self.builder.bases()[0] + share * (self.end - self.builder.bases()[0])) - 1
        if offset < 0:
            return
        bases = self.builder.bases()
        truncate_log(self.builder.log, offset, NOW_MS, fully=offset < bases[0])
        if offset >= self.end:
            return
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        if offset < bases[0]:
            self.start = self.end = offset
            return
        active = max(base for base in bases if base <= offset)
        self.end = max([active, *(batch.last_offset + 1 for batch in self.batches if batch.base_offset >= active)])
        self.start = min(self.start, self.end)

    @rule(offset=st.integers(0, 300))
    def empty(self, offset: int) -> None:
        truncate_log(self.builder.log, offset, NOW_MS, fully=True)
        self.batches, self.start, self.end = [], offset, offset

    @rule(share=st.floats(0, 1))
    def move_start(self, share: float) -> None:
        offset = int(self.start + share * (self.end - self.start))
        self.builder.log.advance_log_start(offset)
        self.start = max(self.start, offset)

    @rule(retention_bytes=st.integers(0, 3000), share=st.floats(0, 1))
    def retain(self, retention_bytes: int, share: float) -> None:
        high_watermark = int(self.start + share * (self.end - self.start))
        log = self.builder.log
        log.configure(replace(self.builder.config, retention_bytes=retention_bytes))
        removed = expire(log, NOW_MS, high_watermark)
        log.configure(self.builder.config)
        assert self.start <= log.log_start_offset <= max(high_watermark, self.start)
        assert bool(removed) or log.log_start_offset == self.start
        self.start = log.log_start_offset
        for path in log.take_due_paths(NOW_MS + 60_000):
            self.builder.disk.unlink(path)

    @precondition(lambda self: len(self.builder.log.segments) > 1)
    @rule(choose=st.data())
    def clean(self, choose: st.DataObject) -> None:
        """Some neighbouring closed segments become one that keeps some of their batches."""
        closed = list(self.builder.log.segments)[:-1]
        first = choose.draw(st.integers(0, len(closed) - 1))
        last = choose.draw(st.integers(first, min(first + 2, len(closed) - 1)))
        old = closed[first : last + 1]
        start, end = old[0].base_offset, self.builder.log.segments[last + 1].base_offset
        inside = [batch for batch in self.batches if start <= batch.base_offset < end]
        kept = [batch for batch in inside if choose.draw(st.booleans())]
        if sum(len(batch.data) for batch in kept) > 5000 or end - start > 2**31:
            return
        new = self.builder.rewrite(old, [bytearray(batch.data) for batch in kept])
        run_steps(self.builder.log.replace([new], old, NOW_MS))
        self.batches = [batch for batch in self.batches if batch not in inside or batch in kept]

    @rule(share=st.floats(0, 1))
    def flush(self, share: float) -> None:
        flush(self.builder.log, int(share * self.end))

    @rule()
    def restart(self) -> None:
        self.builder.reopen(clean=True)

    @rule(share=st.floats(0, 1))
    def crash(self, share: float) -> None:
        log = self.builder.log
        report = self.builder.reopen(clean=False, recovery_point=int(share * log.recovery_point))
        assert report.reason is None

    # Looking

    def expected(self, offset: int, max_bytes: int, bound: int) -> bytes:
        """From the batch that holds the offset, or the next one: the rest of its segment, below the bound."""
        found = next((number for number, batch in enumerate(self.batches) if batch.last_offset >= offset), None)
        if found is None:
            return b""
        first = self.batches[found]
        segment_end = min((base for base in self.builder.bases() if base > first.base_offset), default=self.end)
        data = b""
        for batch in self.batches[found:]:
            if batch.base_offset >= segment_end or batch.last_offset >= bound:
                break
            data += batch.data
        return data[: max(max_bytes, len(first.data))] if data else b""

    @invariant()
    def the_ends_are_the_models(self) -> None:
        log = self.builder.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.recovery_point <= self.end
        assert self.builder.bases() == sorted(self.builder.bases())

    @rule(
        max_bytes=st.sampled_from([1, 60, 150, 400, 10_000]),
        bound=st.none() | st.floats(0, 1.1),
    )
    def read_from_every_offset(self, max_bytes: int, bound: float | None) -> None:
        end = self.end if bound is None else int(self.start + bound * (self.end - self.start))
        interesting = {batch.base_offset for batch in self.batches} | {batch.last_offset for batch in self.batches}
        near = {offset + step for offset in interesting | {self.start, self.end} for step in (-1, 0, 1)}
        for offset in sorted(near):
            if not self.start <= offset <= self.end:
                with pytest.raises(OffsetOutOfRange):
                    self.builder.read(offset, max_bytes, end)
                continue
            assert self.builder.read(offset, max_bytes, end) == self.expected(offset, max_bytes, min(end, self.end))


TestLogAgainstModel = LogAgainstModel.TestCase
TestLogAgainstModel.settings = settings(max_examples=examples(80), stateful_step_count=30, deadline=None)
