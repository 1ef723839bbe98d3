"""What has to be true of a log that was opened after a power cut, judged from its files and from a story's notes."""

from collections.abc import Sequence
from pathlib import Path
from struct import Struct

from lamina.errors import CorruptMessage
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from lamina.log.partition_log import PartitionLog
from lamina.log.producer import Producer
from lamina.log.producer_replay import record_producer
from lamina.log.producer_states import ProducerStates
from lamina.log.segment import Segment
from lamina.records.batch import check_crc, read_header, walk
from lamina.records.marker import read_marker
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig
from tests.log.story import NOW_MS, Batch, Known, Moment, open_directory

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


def moment_at(moments: list[Moment], op: int) -> Moment:
    """The step that was under way after ``op`` operations, or the last one that was done."""
    for moment in moments:
        if moment.first_op < op < moment.end_op:
            return moment
    done = [moment for moment in moments if moment.end_op <= op]
    if not done:
        return Moment("nothing", 0, 0, Known(), Known())
    return Moment(f"after {done[-1].step}", op, op, done[-1].after, done[-1].after)


def check_reopening(path: str, disk: Disk, moment: Moment, config: LogConfig) -> int:
    """Open what a crash left, twice, and append to it. Returns how many operations the first opening took."""
    directory, logs = _open(path, disk, config)
    operations = len(getattr(disk, "ops", ()))
    if logs or moment.step not in ("create", "delete_and_create", "nothing"):
        (log,) = logs
        survivors = check_log(log, moment)
        state = _state(log)
    directory.release()
    again, logs = _open(path, disk, config)
    for log in logs:
        assert _state(log) == state, "opening it again changed it"
        assert _batches_on_disk(log) == survivors
        check_appending(log)
        log.close()
    again.release()
    return operations


def _open(path: str, disk: Disk, config: LogConfig) -> tuple[LogDirectory, list[PartitionLog]]:
    directory = open_directory(path, disk)
    return directory, directory.open_partitions(lambda _: config, NOW_MS)


def check_log(log: PartitionLog, moment: Moment) -> list[Batch]:
    check_names(log)
    survivors = _batches_on_disk(log)
    check_contents(log, survivors, moment)
    for segment in log.segments:
        check_indexes(segment, log.segments.active is not segment)
    lineage = max(moment.before.lineage, moment.after.lineage, key=len)
    check_producers(log, survivors, lineage)
    check_aborted(log, survivors, lineage)
    for batch in survivors:
        if batch.base_offset >= log.log_start_offset:
            assert log.epochs.epoch_at(batch.base_offset) == read_header(batch.data).leader_epoch
    check_reading(log, survivors)
    return survivors


def check_names(log: PartitionLog) -> None:
    """Nothing that is not part of a log, in its directory or in the one above."""
    for path in [*Path(log.path).iterdir(), *Path(log.path).parent.iterdir()]:
        assert path.suffix not in (".cleaned", ".swap", ".deleted", ".tmp"), path


def _batches_on_disk(log: PartitionLog) -> list[Batch]:
    """Every batch in every ``.log`` file, each whole and right, with rising offsets."""
    found: list[Batch] = []
    for path in sorted(Path(log.path).glob("*.log")):
        data, end = path.read_bytes(), 0
        next_offset = int(path.name[:20])
        assert not found or found[-1].last_offset < next_offset, "segments overlap"
        try:
            for position, header in walk(data):
                check_crc(data, position, header)
                assert header.base_offset >= next_offset
                next_offset, end = header.next_offset, position + header.size_bytes
                found.append(Batch(header.base_offset, header.last_offset, data[position:end]))
        except CorruptMessage as error:
            raise AssertionError(f"{path} is damaged at position {end}") from error
        assert end == len(data), f"{path} ends inside a batch"
    return found


def check_contents(log: PartitionLog, survivors: list[Batch], moment: Moment) -> None:
    before, after = moment.before, moment.after
    lineage = max(before.lineage, after.lineage, key=len)
    assert set(survivors) <= set(lineage), "a batch that was cut off, or never was"
    left = set(after.present)
    lost = [
        batch
        for batch in before.present
        if log.log_start_offset <= batch.last_offset < before.durable_end and batch in left - set(survivors)
    ]
    assert not lost, f"flushed batches are gone: {[batch.base_offset for batch in lost]}"
    if after.present:
        start = after.present[0].base_offset
        rest = [batch for batch in survivors if batch.base_offset >= start]
        if log.config.compact:
            assert set(rest) <= {*before.present, *after.present}, "a cleaned batch is back"
        else:
            assert rest == [batch for batch in lineage if batch.base_offset >= start][: len(rest)], "a hole"
    if moment.step != "delete_and_create":
        assert log.log_end_offset >= min(before.durable_end, after.durable_end), "offsets would be given twice"
    assert log.log_start_offset <= log.log_end_offset
    assert log.log_start_offset >= min(before.durable_start, after.durable_start), "deleted records are back"
    assert log.log_start_offset <= max(before.log_start_offset, after.log_start_offset)
    if survivors:
        assert log.log_end_offset == max(survivors[-1].last_offset + 1, log.segments.active.base_offset)


def check_indexes(segment: Segment, is_closed: bool) -> None:
    """Each entry names a batch; the last time entry of a closed segment names its largest timestamp."""
    pair = segment.indexes
    data = Path(segment.path()).read_bytes()
    starts = dict(walk(data))
    previous = -1
    for number in range(pair.offsets.file.count):
        entry = pair.offsets.entry(number)
        assert entry.position in starts, "an offset entry points inside a batch"
        assert starts[entry.position].last_offset == entry.offset
        assert entry.offset > previous
        previous = entry.offset
    largest: list[tuple[int, int]] = []
    for header in starts.values():
        if not largest or header.max_timestamp > largest[-1][0]:
            largest.append((header.max_timestamp, header.last_offset))
    times = [tuple(pair.times.entry(number)) for number in range(pair.times.file.count)]
    assert times == sorted(set(times))
    assert set(times) <= set(largest), "a time entry is not true"
    if is_closed and largest:
        assert tuple(segment.largest_timestamp()) == largest[-1]


def _replay(batches: Sequence[Batch]) -> ProducerStates:
    states = ProducerStates()
    for batch in batches:
        header = read_header(batch.data)
        if header.producer_id >= 0:
            marker = read_marker(batch.data, 0, header) if header.is_control else None
            record_producer(states, header, batch.base_offset, marker)
    return states


def _fields(producer: Producer) -> tuple[int | None, ...]:
    return (
        producer.epoch,
        producer.last_sequence,
        producer.last_data_offset,
        producer.coordinator_epoch,
        producer.last_timestamp,
        producer.current_txn_first_offset,
    )


def check_producers(log: PartitionLog, survivors: list[Batch], lineage: tuple[Batch, ...]) -> None:
    """What the surviving batches say, deleted ones too; a snapshot may also know of batches before them."""
    known = [batch for batch in lineage if batch.last_offset < log.log_end_offset]
    possible = [_replay(known[start:]) for start in range(len(known))]
    if log.config.compact:
        possible.append(_replay(survivors))  # which may lack unflushed batches between two segments
    for producer_id, producer in log.producers.producers.items():
        candidates = [_fields(states.producers[producer_id]) for states in possible if producer_id in states.producers]
        assert _fields(producer) in candidates, f"{producer} is none of {candidates}"
    for producer_id, expected in _replay(survivors).producers.items():
        actual = log.producers.producers[producer_id]
        assert actual.epoch == expected.epoch
        if expected.batches:
            assert actual.batches[-1][:3] == expected.batches[-1][:3]


def check_aborted(log: PartitionLog, survivors: list[Batch], lineage: tuple[Batch, ...]) -> None:
    """Each abort marker whose transaction can be read is in the index of its segment."""
    found = {entry.last_offset: entry for segment in log.segments for entry in segment.aborted.entries()}
    states = ProducerStates()
    offsets = {batch.base_offset for batch in survivors if batch.base_offset >= log.log_start_offset}
    for batch in lineage:
        header = read_header(batch.data)
        if header.producer_id < 0:
            continue
        marker = read_marker(batch.data, 0, header) if header.is_control else None
        aborted = record_producer(states, header, batch.base_offset, marker)
        if aborted is not None and {aborted.first_offset, aborted.last_offset} <= offsets:
            assert found[aborted.last_offset][:3] == aborted[:3]
    assert set(found) <= {batch.base_offset for batch in lineage}


def check_reading(log: PartitionLog, survivors: list[Batch]) -> None:
    for offset in range(log.log_start_offset, log.log_end_offset):
        expected = next((batch for batch in survivors if batch.last_offset >= offset), None)
        lease = log.read(offset, 1)
        if expected is None:
            assert lease is None
        else:
            assert lease is not None
            with lease:
                assert lease.read() == expected.data


def check_appending(log: PartitionLog) -> None:
    end = log.log_end_offset
    batch = build_batch([Record(0, NOW_MS, b"k", b"after the crash")])
    placed = log.append(batch, read_header(batch), log.epochs.latest + 1, NOW_MS)
    assert placed.first_offset == end
    lease = log.read(end, 1)
    assert lease is not None
    with lease:
        assert lease.read() == batch


def _state(log: PartitionLog) -> tuple[object, ...]:
    return (
        log.log_start_offset,
        log.log_end_offset,
        [entry for entry in log.epochs.entries if entry.start_offset < log.log_end_offset],
        {producer_id: _fields(producer) for producer_id, producer in log.producers.producers.items()},
        [(segment.base_offset, segment.size_bytes) for segment in log.segments],
    )
