"""Which segments of a log become one (facts 41-43).

Must not know files: a source is a few numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lamina.records.batch import MAX_RELATIVE_OFFSET


class Source(Protocol):
    @property
    def base_offset(self) -> int: ...

    @property
    def next_base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def index_bytes(self) -> int: ...

    @property
    def time_index_bytes(self) -> int: ...


S = TypeVar("S", bound=Source)


@dataclass(frozen=True, slots=True)
class GroupLimits:
    segment_bytes: int
    index_bytes: int
    """For each of the two indexes."""


def group_segments(sources: Sequence[S], limits: GroupLimits) -> list[list[S]]:
    """Consecutive sources, as many together as the limits allow; sizes are those before cleaning (fact 42)."""
    groups: list[list[S]] = []
    for source in sources:
        if groups and _fits(groups[-1], source, limits):
            groups[-1].append(source)
        else:
            groups.append([source])
    return groups


def _fits(group: Sequence[Source], source: Source, limits: GroupLimits) -> bool:
    together = [*group, source]
    last_offset = source.next_base_offset - 1
    return (
        sum(each.size_bytes for each in together) <= limits.segment_bytes
        and sum(each.index_bytes for each in together) <= limits.index_bytes
        and sum(each.time_index_bytes for each in together) <= limits.index_bytes
        and (source.size_bytes == 0 or last_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET)
    )
