"""The walk over records: plain, compiled, and the compiled one's source over bytes that notice every stray read."""

from fuzz.choices import Choices
from lamina.errors import CorruptMessage
from lamina.records.record_walk import RecordWalk, Walk, walk_records

try:
    from lamina.records.kernel import walk_natively
    from tests.records.guarded import walk_guarded
except ImportError:
    _HAS_KERNEL = False
else:
    _HAS_KERNEL = True


def one(data: bytes) -> None:
    choices = Choices(data)
    needs_keys = choices.flag()
    count = choices.one_of((1, 2, 3, 40, 1500, 2**31 - 1))
    base_timestamp, earliest_ms, latest_ms = (choices.number(8, signed=True) for _ in range(3))
    records = choices.rest()
    plain = _outcome(walk_records, records, count, base_timestamp, needs_keys, earliest_ms, latest_ms)
    if isinstance(plain, RecordWalk):
        assert len(plain.faults) <= count
    if _HAS_KERNEL:
        native = _outcome(walk_natively, records, count, base_timestamp, needs_keys, earliest_ms, latest_ms)
        assert native == plain
        walk_guarded(records, count, base_timestamp, needs_keys, earliest_ms, latest_ms)


def _outcome(
    walk: Walk, records: bytes, count: int, base_timestamp: int, needs_keys: bool, earliest_ms: int, latest_ms: int
) -> RecordWalk | str:
    try:
        return walk(records, count, base_timestamp, needs_keys=needs_keys, earliest_ms=earliest_ms, latest_ms=latest_ms)
    except CorruptMessage as error:
        return str(error)
