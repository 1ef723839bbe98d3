"""Batches of one plain record are read as any batch is."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.records.batch import Codec, walk
from lamina.records.plain import Latest, take_plain
from lamina.records.record import Record, build_batch, iterate_records

LIMIT_BYTES = 1 << 20

texts = st.one_of(
    st.none(),
    st.binary(max_size=100),
    st.builds(bytes.__mul__, st.binary(min_size=1, max_size=1), st.integers(8180, 8200)),
)
"""Some about as long as the limit of what is taken, and no longer to draw than the others."""
records = st.builds(
    Record,
    offset=st.just(0),
    timestamp=st.just(1_700_000_000_000),
    key=texts,
    value=texts,
    headers=st.one_of(st.just(()), st.just(((b"name", b"content"),))),
)
batches = st.builds(
    lambda number, contents, codec, is_transactional: build_batch(
        [Record(number + at, one.timestamp, one.key, one.value, one.headers) for at, one in enumerate(contents)],
        codec=codec,
        is_transactional=is_transactional,
        producer_id=7,
    ),
    st.integers(0, 2**40),
    st.one_of(records.map(lambda one: [one]), st.lists(records, min_size=1, max_size=3)),
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP]),
    st.sampled_from([False, False, False, True]),
)


@given(st.lists(batches, max_size=8), st.integers(0, 200))
def test_what_is_taken_is_what_the_records_say(built: list[bytearray], cut_bytes: int) -> None:
    data = b"".join(built)
    data = data[: max(len(data) - cut_bytes, 0)]
    latest: Latest = {}
    position, next_offset = take_plain(data, 0, latest)
    expected: list[tuple[bytes | None, bytes | None]] = []
    last = None
    for at, header in walk(data[:position]):
        (record,) = iterate_records(data, at, header, LIMIT_BYTES)
        assert not header.attributes
        assert not record.headers
        expected = [(key, value) for key, value in expected if key != record.key] + [(record.key, record.value)]
        last = header.next_offset
    assert list(latest.items()) == expected
    assert next_offset == last


def test_plain_batches_are_all_taken() -> None:
    built = [build_batch([Record(at, 5, b"k" * at, None if at % 7 == 0 else b"v" * at)]) for at in range(200)]
    data = b"".join(built)
    latest: Latest = {}
    assert take_plain(data, 0, latest) == (len(data), 200)
    assert len(latest) == 200


@given(st.lists(batches, min_size=1, max_size=3), st.data())
def test_damage_is_never_more_than_a_stop(built: list[bytearray], data: st.DataObject) -> None:
    damaged = bytearray(b"".join(built))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    position, _ = take_plain(bytes(damaged), 0, {})
    assert 0 <= position <= len(damaged)
