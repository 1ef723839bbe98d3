"""Evening out loads that consist of single items: replicas on brokers, leaders among replicas.

Items go from the heaviest owner to a lighter one, directly or through others that pass on as much as they get, until no
such way is left. Every round makes the sum of squares smaller, so it ends. Must not know what an item is.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")

FindItem = Callable[[int, int, frozenset[Item]], Item | None]
"""The item that is best moved from one owner to another, none of the given ones; ``None`` if none can be."""


def level(
    owners: Iterable[int], loads: Mapping[int, int], find: FindItem[Item], move: Callable[[Item, int, int], None]
) -> None:
    """Call ``move`` until loads, which it keeps up to date, are as even as items allow."""
    every = sorted(owners)
    while (shift := _next_shift(every, loads, find)) is not None:
        for item, source, target in shift:
            move(item, source, target)


def _next_shift(
    owners: list[int], loads: Mapping[int, int], find: FindItem[Item]
) -> list[tuple[Item, int, int]] | None:
    """What makes an owner lighter by one, and one that has at least two less heavier by one."""
    lightest = min((loads[one] for one in owners), default=0)
    for source in sorted(owners, key=lambda one: (-loads[one], one)):
        if loads[source] < lightest + 2:
            return None
        shift = _shift_from(source, owners, loads, find)
        if shift is not None:
            return shift
    return None


def _shift_from(
    source: int, owners: list[int], loads: Mapping[int, int], find: FindItem[Item]
) -> list[tuple[Item, int, int]] | None:
    """Breadth first, so that as few items as possible move; among the nearest the lightest owner gets one."""
    came_from: dict[int, int] = {source: source}
    frontier = [source]
    by_load = sorted(owners, key=lambda one: (loads[one], one))
    while frontier:
        reached: list[int] = []
        for target in by_load:
            if target in came_from:
                continue
            before = next((one for one in frontier if find(one, target, frozenset()) is not None), None)
            if before is None:
                continue
            came_from[target] = before
            reached.append(target)
            if loads[target] <= loads[source] - 2:
                shift = _along(_path(came_from, target), find)
                if shift is not None:
                    return shift
        frontier = reached
    return None


def _path(came_from: Mapping[int, int], target: int) -> list[int]:
    path = [target]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    return path[::-1]


def _along(path: list[int], find: FindItem[Item]) -> list[tuple[Item, int, int]] | None:
    """A different item for each step: whether one can move depends on nothing but itself."""
    used: frozenset[Item] = frozenset()
    shift: list[tuple[Item, int, int]] = []
    for source, target in pairwise(path):
        item = find(source, target, used)
        if item is None:
            return None
        used |= {item}
        shift.append((item, source, target))
    return shift
