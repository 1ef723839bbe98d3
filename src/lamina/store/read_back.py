"""Has a transaction happened whose answer was lost? Told from what is there afterwards.

Owns the comparison. An entry as the transaction leaves it (its version, its value, its owner) says yes, an entry as it
was expected says no; a mixture says that somebody else has written since, and nothing is known. Must not read anything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from lamina.store.interface import Check, Create, Delete, Entry, Operation, Set


class Outcome(Enum):
    HAPPENED = auto()
    NOT_HAPPENED = auto()
    UNKNOWN = auto()


@dataclass(slots=True)
class _Effect:
    """What a transaction does to one path. A version of ``None`` means that it is not there."""

    version_before: int | None
    version: int | None
    value: bytes = b""
    is_ephemeral: bool = False

    def is_done(self, found: Entry | None, session_id: int) -> bool:
        if found is None or self.version is None:
            return found is None and self.version is None
        is_ours = found.owner == session_id if self.is_ephemeral else found.owner == 0
        return (found.version, found.value) == (self.version, self.value) and is_ours

    def is_not_done(self, found: Entry | None) -> bool:
        return (None if found is None else found.version) == self.version_before


def outcome(operations: Iterable[Operation], found: Mapping[str, Entry], session_id: int) -> Outcome:
    effects = _effects(operations)
    if effects and all(effect.is_done(found.get(path), session_id) for path, effect in effects.items()):
        return Outcome.HAPPENED
    if all(effect.is_not_done(found.get(path)) for path, effect in effects.items()):
        return Outcome.NOT_HAPPENED
    return Outcome.UNKNOWN


def _effects(operations: Iterable[Operation]) -> dict[str, _Effect]:
    """One path may be written several times in one transaction."""
    effects: dict[str, _Effect] = {}
    for operation in operations:
        match operation:
            case Create(path, value, is_ephemeral):
                before = effects[path].version_before if path in effects else None
                effects[path] = _Effect(before, 0, value, is_ephemeral)
            case Set(path, value, version):
                effect = effects.setdefault(path, _Effect(version, version))
                effect.version, effect.value = version + 1, value
            case Delete(path, version):
                effects.setdefault(path, _Effect(version, version)).version = None
            case Check():
                pass
    return effects
