"""From the bytes of an internal topic's log to what a state machine replays.

Of each key only the last record counts, as after compaction, so only that one is kept and decoded: loading costs as
much as there is state, not as there was history. Records of a transaction stay in their place, between those before
and those after them. Must not know files or any machine.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from lamina.coordinators.decision import Decision, Now, Producer, TimerName
from lamina.records.batch import BatchHeader, walk
from lamina.records.marker import ControlType, read_marker
from lamina.records.plain import Latest, take_plain
from lamina.records.record import iterate_records

R = TypeVar("R")

_MAX_BATCH_BYTES = 128 * 1024 * 1024
"""What a batch of an internal topic may decompress to."""


class Machine(Protocol[R]):
    """A state machine that lives in a log."""

    def replay(self, record: R, producer: Producer | None) -> None:
        """Take over a record that is in the log; with a producer it counts only when its transaction commits."""

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """A marker is in the log."""

    def loaded(self, now: Now) -> Decision[R]:
        """The log was replayed to its end: begin to work."""
        ...

    def on_timer(self, name: TimerName, now: Now) -> Decision[R]: ...


class Put(NamedTuple):
    key: bytes | None
    value: bytes | None
    producer: Producer | None = None


class End(NamedTuple):
    producer_id: int
    is_committed: bool


class History:
    """What a log says, as far as it was fed, with all that was overwritten left out."""

    def __init__(self) -> None:
        self._steps: list[Latest | Put | End] = []
        self._latest: Latest = {}
        self.next_offset = 0

    def feed(self, chunk: bytes) -> None:
        """Take in whole batches; the rest of one that was cut off at the end is left for the next time."""
        position = 0
        while True:
            position, next_offset = take_plain(chunk, position, self._latest)
            if next_offset is not None:
                self.next_offset = next_offset
            other = next(walk(chunk, position), None)
            if other is None:
                return
            _, header = other
            self._take(chunk, position, header)
            position += header.size_bytes

    def _take(self, chunk: bytes, position: int, header: BatchHeader) -> None:
        """A batch of any kind."""
        self.next_offset = header.next_offset
        if header.is_control:
            marker = read_marker(chunk, position, header)
            if marker is not None and marker.control_type in (ControlType.COMMIT, ControlType.ABORT):
                self._close_latest()
                self._steps.append(End(header.producer_id, marker.control_type is ControlType.COMMIT))
            return
        records = iterate_records(chunk, position, header, _MAX_BATCH_BYTES)
        if header.is_transactional:
            self._close_latest()
            producer = Producer(header.producer_id, header.producer_epoch)
            self._steps += [Put(record.key, record.value, producer) for record in records]
            return
        latest = self._latest
        for record in records:
            # Its place in the order is that of the last record, not the first.
            latest.pop(record.key, None)
            latest[record.key] = record.value

    def _close_latest(self) -> None:
        if self._latest:
            self._steps.append(self._latest)
            self._latest = {}

    def steps(self) -> Iterator[Put | End]:
        self._close_latest()
        for step in self._steps:
            if isinstance(step, dict):
                for key, value in step.items():
                    yield Put(key, value)
            else:
                yield step


Decode = Callable[[bytes | None, bytes | None], R | None]


def replay(machine: Machine[R], steps: Iterator[Put | End], decode: Decode[R], count: int) -> bool:
    """Replay up to ``count`` steps. False when there are no more."""
    for step in islice(steps, count):
        count -= 1
        if isinstance(step, End):
            machine.end_transaction(step.producer_id, is_committed=step.is_committed)
            continue
        record = decode(step.key, step.value)
        if record is not None:
            machine.replay(record, step.producer)
    return count == 0
