"""From the bytes of an internal topic's log to what a state machine replays.

Of each key only the last record counts, as after compaction, so only that one is kept and decoded: loading costs as
much as there is state, not as there was history. Records of a transaction stay in their place, between those before
and those after them. Must not know files or any machine.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from lamina.coordinators.decision import Decision, Now, Producer, TimerName
from lamina.records.batch import walk
from lamina.records.marker import ControlType, read_marker
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
        self._settled: list[Put | End] = []
        self._latest: dict[bytes | None, bytes | None] = {}
        self.next_offset = 0

    def feed(self, chunk: bytes) -> None:
        """Take in whole batches; the rest of one that was cut off at the end is left for the next time."""
        for position, header in walk(chunk):
            self.next_offset = header.next_offset
            if header.is_control:
                marker = read_marker(chunk, position, header)
                if marker is not None and marker.control_type in (ControlType.COMMIT, ControlType.ABORT):
                    self._settle()
                    self._settled.append(End(header.producer_id, marker.control_type is ControlType.COMMIT))
                continue
            producer = None
            if header.is_transactional:
                self._settle()
                producer = Producer(header.producer_id, header.producer_epoch)
            latest = self._latest
            for record in iterate_records(chunk, position, header, _MAX_BATCH_BYTES):
                if producer is not None:
                    self._settled.append(Put(record.key, record.value, producer))
                    continue
                # Its place in the order is that of the last record, not the first.
                latest.pop(record.key, None)
                latest[record.key] = record.value

    def _settle(self) -> None:
        self._settled += [Put(key, value) for key, value in self._latest.items()]
        self._latest = {}

    def steps(self) -> Iterator[Put | End]:
        self._settle()
        yield from self._settled


Decode = Callable[[bytes | None, bytes | None], R | None]


def replay(machine: Machine[R], steps: Iterator[Put | End], decode: Decode[R], count: int) -> bool:
    """Replay up to ``count`` steps. False when there are no more."""
    for _ in range(count):
        step = next(steps, None)
        if step is None:
            return False
        if isinstance(step, End):
            machine.end_transaction(step.producer_id, is_committed=step.is_committed)
            continue
        record = decode(step.key, step.value)
        if record is not None:
            machine.replay(record, step.producer)
    return True
