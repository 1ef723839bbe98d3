"""A partition's log opened on any files, after a clean stop or a crash: what is kept is valid, and stays."""

from pathlib import Path

from fuzz.choices import Choices
from fuzz.files import scratch, unpack_files
from fuzz.sealing import seal_file
from lamina.errors import CorruptMessage, MessageTooLarge, OffsetOutOfRange, UnsupportedCompression
from lamina.log.entries import OpenMaps
from lamina.log.files import Disk
from lamina.log.flushing import close_cleanly
from lamina.log.index_pair import IndexRebuilds, IndexShape
from lamina.log.lookup import Search, offset_for_timestamp, offset_of_max_timestamp
from lamina.log.partition_log import PartitionLog
from lamina.log.recovery import Opening, open_log
from lamina.log.scan import checked_batches, headers
from lamina.records.batch import read_header
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import DAY_MS, LogConfig

_BASES = ("00000000000000000000", "00000000000000000004", "00000000000000000010", "09223372036854775807")
_EXTENSIONS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.swap", ".log.cleaned", ".log.deleted")
NAMES = (*(base + extension for base in _BASES for extension in _EXTENSIONS), "leader-epoch-checkpoint")
"""What a partition's directory may hold."""

NOW_MS = 1_700_000_000_000
_LIMIT_BYTES = 1 << 20
_CONFIG = LogConfig(segment_bytes=1000, segment_index_bytes=1200, index_interval_bytes=200)


def one(data: bytes) -> None:
    choices = Choices(data)
    is_sealed, is_clean, may_have_gaps = choices.flag(), choices.flag(), choices.flag()
    recovery_point, log_start_offset = choices.number(), choices.number()
    files = unpack_files(NAMES, choices)
    if is_sealed:
        files = {name: seal_file(name, content) for name, content in files.items()}
    opening = Opening(
        clean=is_clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        high_watermark=recovery_point,
        may_have_gaps=may_have_gaps,
        now_ms=NOW_MS,
        producer_expiration_ms=DAY_MS,
    )
    with scratch(files) as root:
        log = _open(root, opening)
        _check_offsets(log)
        if not is_clean and recovery_point == 0:
            _check_batches(log)
        end_offset = log.log_end_offset
        _use(log)
        is_readable = _is_readable(log)
        close_cleanly(log)
        again = _open(root, _after(opening, log))
        # A clean start believes its indexes: bad bytes below them are cut off by the next one that makes them again.
        if is_readable:
            assert again.log_start_offset == log.log_start_offset
            assert again.log_end_offset == log.log_end_offset >= end_offset
        bases = [segment.base_offset for segment in log.segments]
        assert [segment.base_offset for segment in again.segments] == bases[: len(again.segments)]
        again.close()


def _open(root: Path, opening: Opening) -> PartitionLog:
    shape = IndexShape(_CONFIG.segment_index_bytes, _CONFIG.index_interval_bytes, OpenMaps(), IndexRebuilds())
    state, _ = open_log(Disk(), str(root), shape, opening)
    return PartitionLog(Disk(), "topic", 0, str(root), _CONFIG, shape, state)


def _after(opening: Opening, log: PartitionLog) -> Opening:
    return Opening(
        clean=True,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
        high_watermark=log.checkpointed_high_watermark,
        may_have_gaps=opening.may_have_gaps,
        now_ms=NOW_MS,
        producer_expiration_ms=DAY_MS,
    )


def _check_offsets(log: PartitionLog) -> None:
    assert 0 <= log.log_start_offset <= log.log_end_offset
    assert log.recovery_point <= log.log_end_offset
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    assert log.epochs.entries == sorted(set(log.epochs.entries))


def _check_batches(log: PartitionLog) -> None:
    """Every byte that recovery kept belongs to a whole batch with a right CRC, and offsets only grow."""
    next_offset = 0
    for segment in log.segments:
        assert segment.base_offset >= next_offset
        with segment.lease(0, segment.size_bytes) as lease:
            assert lease.file.size() == segment.size_bytes
            for _, header, _ in checked_batches(lease.file, 0, segment.size_bytes):
                assert header.base_offset >= max(next_offset, segment.base_offset)
                next_offset = header.next_offset


def _is_readable(log: PartitionLog) -> bool:
    """Whether every byte of it belongs to a batch."""
    try:
        for segment in log.segments:
            with segment.lease(0, segment.size_bytes) as lease:
                for _ in headers(lease.file, 0, segment.size_bytes):
                    pass
    except CorruptMessage:
        return False
    return True


def _use(log: PartitionLog) -> None:
    """Read, look up and append as a broker does; what was not checked at opening may turn out to be bad."""
    try:
        for offset in (log.log_start_offset, log.log_end_offset - 1, log.log_end_offset):
            _read(log, offset)
        _finish(offset_for_timestamp(log, NOW_MS, log.log_end_offset, _LIMIT_BYTES))
        _finish(offset_of_max_timestamp(log, log.log_end_offset, _LIMIT_BYTES))
    except (CorruptMessage, MessageTooLarge, UnsupportedCompression):
        pass
    if log.log_end_offset < 2**62:
        batch = build_batch([Record(0, NOW_MS, b"key", b"value")])
        appended = log.append(batch, read_header(batch), 7, NOW_MS)
        assert appended.first_offset + 1 == log.log_end_offset


def _read(log: PartitionLog, offset: int) -> None:
    try:
        lease = log.read(offset, 500)
    except OffsetOutOfRange:
        assert not log.log_start_offset <= offset <= log.log_end_offset
        return
    if lease is not None:
        with lease:
            assert len(lease.read()) == lease.size_bytes > 0


def _finish(search: Search) -> None:
    try:
        step = next(search)
        while True:
            step = search.send(step())
    except StopIteration:
        pass
    finally:
        search.close()
