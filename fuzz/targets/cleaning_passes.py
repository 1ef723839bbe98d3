"""A cleaning pass over any bytes that lie in segments: refused in a sentence, or right by both ways and by the model.

The kernels are compiled, so what they read past their end nobody would see; that the two ways and the slow model agree
on what is left is the best that can be asked of them.
"""

from contextlib import suppress
from pathlib import Path

from fuzz.choices import Choices
from fuzz.files import scratch
from fuzz.sealing import seal_batches
from lamina.cleaning.failures import CleaningFailed
from lamina.errors import CorruptMessage
from lamina.records.batch import read_header, walk
from lamina.records.record import Record, read_records
from tests.cleaning.passes import Way, assert_cleaned, plan_of, run_pass
from tests.compaction.model import LIMIT_BYTES, Abort, Pass, Segment, clean
from tests.compaction.story import START_MS, Story

_MOST_SEGMENTS = 3
_END_OFFSET = 1000


def one(data: bytes) -> None:
    choices = Choices(data)
    is_sealed = choices.flag()
    has_aborts = choices.flag()
    story = Story()
    p = Pass(
        now_ms=START_MS + choices.number(),
        delete_retention_ms=choices.one_of((0, 100, 86_400_000)),
        first_dirty_offset=choices.number(),
        end_offset=_END_OFFSET,
        producers={choices.number(): (0, choices.number() if choices.flag() else None)},
    )
    story.segments = _segments(choices, is_sealed=is_sealed, has_aborts=has_aborts)
    if not story.segments:
        return
    outcomes = [_outcome(story, p, way) for way in Way]
    assert outcomes[0] == outcomes[1], "the two ways differ"
    if not isinstance(outcomes[0], str):
        _check_records(story.segments, outcomes[0])


def _segments(choices: Choices, *, is_sealed: bool, has_aborts: bool) -> list[Segment]:
    segments: list[Segment] = []
    base_offset = 0
    while not choices.is_over and len(segments) < _MOST_SEGMENTS:
        aborts = [Abort(*(choices.number() for _ in range(4)))] if has_aborts else []
        data = choices.take(choices.number(2))
        segments.append(Segment(base_offset, [seal_batches(data) if is_sealed else data], aborts))
        base_offset += 1 + choices.number()
    return segments


def _outcome(story: Story, p: Pass, way: Way) -> str | list[Segment]:
    """What is left, or why the pass was refused."""
    with scratch({}) as root:
        plan = plan_of(Path(root), story, p, plan_id="p")
        try:
            manifest, new = run_pass(plan, way)
        except CleaningFailed as refused:
            return type(refused).__name__
        split = [Segment(segment.base_offset, _batches(segment.data), segment.aborts) for segment in story.segments]
        if not story.aborts:
            # The model takes the lists of aborts for what they are in a real log, where they fit its markers.
            assert_cleaned(plan, manifest, new, clean(split, [], p))
        return new


def _batches(data: bytes) -> list[bytes]:
    return [data[position : position + header.size_bytes] for position, header in walk(data)]


def _check_records(before: list[Segment], after: list[Segment]) -> None:
    """No record was made up, and none was changed."""
    known: dict[int, Record] = {}
    for batch in _batches_of(before):
        with suppress(CorruptMessage):  # A batch of an aborted transaction goes unread.
            known |= {record.offset: record for record in _records(batch)}
    left = [record for batch in _batches_of(after) for record in _records(batch)]
    assert [known[record.offset] for record in left] == left


def _batches_of(segments: list[Segment]) -> list[bytes]:
    return [batch for segment in segments for batch in _batches(segment.data)]


def _records(batch: bytes) -> list[Record]:
    return read_records(batch, 0, read_header(batch), LIMIT_BYTES)
