"""A batch of which only the header is left, in a live log: readers pass over it, recovery reads producers from it."""

from pathlib import Path

import pytest

from lamina.log.steps import run_steps
from lamina.records.record import build_empty_batch
from tests.log.building import LogBuilder, a_log


def emptied(tmp_path: Path, *, commits: bool) -> LogBuilder:
    """Offset 0 of producer 7, its marker at 1 if it commits, both only headers now; then a record, then the active
    segment. Nothing is known of producers but what the batches say."""
    builder = a_log(tmp_path, compact=True, delete=False)
    builder.append(b"k=1", producer_id=7, producer_epoch=3, base_sequence=40, is_transactional=commits)
    if commits:
        builder.commit(7, producer_epoch=3)
    builder.append(b"k=2")
    builder.log.roll(builder.now_ms)
    kept = [
        build_empty_batch(header) if header.producer_id == 7 else bytearray(data) for header, data in builder.batches()
    ]
    old = list(builder.log.segments)[:1]
    run_steps(builder.log.replace([builder.rewrite(old, kept)], old, builder.now_ms))
    return builder


def recover(builder: LogBuilder) -> None:
    for path in builder.path.glob("*.snapshot"):
        path.unlink()
    builder.log.close()
    for path in builder.path.glob("*.snapshot"):
        path.unlink()
    builder.log, _ = builder._open(clean=False, recovery_point=0, log_start_offset=0)


def test_fact_74_a_header_alone_is_read_like_any_batch_and_advances_the_reader(tmp_path: Path) -> None:
    builder = emptied(tmp_path, commits=True)
    assert [(header.base_offset, header.record_count) for header, _ in builder.batches()] == [(0, 0), (1, 0), (2, 1)]
    assert builder.texts() == [b"k=2"]
    assert builder.read(0)[:8] == bytes(8)
    assert int.from_bytes(builder.read(1)[:8], "big") == 1


def test_fact_74_recovery_reads_a_producers_state_from_a_header_alone(tmp_path: Path) -> None:
    builder = emptied(tmp_path, commits=False)
    recover(builder)
    producer = builder.log.producers.producers[7]
    assert (producer.epoch, producer.last_sequence, producer.last_data_offset) == (3, 40, 0)
    duplicate = builder.append(b"k=1", producer_id=7, producer_epoch=3, base_sequence=40)
    assert duplicate.first_offset == 0
    assert builder.append(b"k=3", producer_id=7, producer_epoch=3, base_sequence=41).first_offset == 2


@pytest.mark.parametrize("is_known", [True, False])
def test_fact_75_a_marker_of_which_only_the_header_is_left_ends_nothing(tmp_path: Path, is_known: bool) -> None:
    builder = emptied(tmp_path, commits=True)
    if not is_known:
        header, _ = builder.batches()[1]
        old = list(builder.log.segments)[:1]
        rest = [bytearray(data) for other, data in builder.batches() if other.base_offset != 0]
        run_steps(builder.log.replace([builder.rewrite(old, rest)], old, builder.now_ms))
        assert header.is_control
    recover(builder)
    producer = builder.log.producers.producers.get(7)
    if not is_known:
        assert producer is None or (producer.current_txn_first_offset, producer.last_sequence) == (None, -1)
    else:
        assert producer is not None
        assert (producer.epoch, producer.last_sequence) == (3, 40)
