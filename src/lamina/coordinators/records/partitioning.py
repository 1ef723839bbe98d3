"""Which partition of an internal topic a group or a transactional id lives in: Java's string hash, as Kafka has it."""

from functools import lru_cache

_INT32 = 1 << 32
_MAX_INT32 = (1 << 31) - 1
_MIN_INT32 = -(1 << 31)
_REMEMBERED = 10_000
"""Names whose hash is not computed again: every request names its group."""


@lru_cache(maxsize=_REMEMBERED)
def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 units, in 32 bits with sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + (units[at] << 8 | units[at + 1])) % _INT32
    return value - _INT32 if value > _MAX_INT32 else value


def partition_of(text: str, count: int) -> int:
    value = java_hash(text)
    return (0 if value == _MIN_INT32 else abs(value)) % count
