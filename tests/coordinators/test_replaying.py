"""What a log says to a state machine, however it is cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.decision import Producer
from lamina.coordinators.replaying import End, History, Put
from lamina.records.batch import Codec
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch


def batch(offset: int, *pairs: tuple[bytes, bytes | None], producer_id: int | None = None) -> bytearray:
    return build_batch(
        [Record(offset + at, 1000, key, value) for at, (key, value) in enumerate(pairs)],
        codec=Codec.LZ4 if offset % 3 == 2 else Codec.NONE,
        producer_id=-1 if producer_id is None else producer_id,
        producer_epoch=0,
        is_transactional=producer_id is not None,
    )


def marker(offset: int, producer_id: int, control_type: ControlType) -> bytearray:
    return build_marker(
        control_type,
        offset=offset,
        timestamp_ms=1000,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
    )


LOG = [
    batch(0, (b"a", b"1")),
    batch(1, (b"b", b"1")),
    batch(2, (b"a", b"2"), (b"c", b"1")),
    batch(4, (b"b", None)),
    batch(5, (b"a", b"pending"), producer_id=9),
    batch(6, (b"a", b"3")),
    marker(7, 9, ControlType.COMMIT),
    batch(8, (b"a", b"4")),
]
STEPS = [
    Put(b"a", b"2"),
    Put(b"c", b"1"),
    Put(b"b", None),
    Put(b"a", b"pending", Producer(9, 0)),
    Put(b"a", b"3"),
    End(9, is_committed=True),
    Put(b"a", b"4"),
]


@given(st.integers(1, 3))
def test_only_the_last_record_of_a_key_counts_except_around_transactions(batches_at_a_time: int) -> None:
    history = History()
    for start in range(0, len(LOG), batches_at_a_time):
        history.feed(b"".join(LOG[start : start + batches_at_a_time]))
    assert history.next_offset == 9
    assert list(history.steps()) == STEPS


def test_a_batch_that_is_cut_off_is_left_for_the_next_time() -> None:
    history = History()
    history.feed(bytes(LOG[0] + LOG[1][:-1]))
    assert history.next_offset == 1
    history.feed(bytes(LOG[1]))
    assert history.next_offset == 2
