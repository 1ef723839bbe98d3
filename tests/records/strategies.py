"""Hypothesis strategies for records: every shape a client may send."""

from hypothesis import strategies as st

from lamina.records.record import Record

_nullable_bytes = st.none() | st.binary(max_size=200)
_headers = st.lists(st.tuples(st.binary(max_size=20), _nullable_bytes), max_size=4).map(tuple)
_timestamps = st.integers(0, 2**62)


@st.composite
def records(draw: st.DrawFn, *, first_offset: int | None = None, most: int = 12, gaps: bool = False) -> list[Record]:
    """At least one record, offsets rising: by one, or with the gaps that cleaning leaves."""
    offset = draw(st.integers(0, 2**40)) if first_offset is None else first_offset
    found = []
    for _ in range(draw(st.integers(1, most))):
        found.append(Record(offset, draw(_timestamps), draw(_nullable_bytes), draw(_nullable_bytes), draw(_headers)))
        offset += draw(st.integers(1, 1000)) if gaps else 1
    return found
