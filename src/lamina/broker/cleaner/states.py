"""Whether a partition is being cleaned, was told to stop, or must not be cleaned now (facts 26 and 27).

Owns the states: none, in progress, aborted, paused(n). A pass that is aborted is fenced at once by its plan id, so
nobody waits for its job; the partition can be cleaned again when the job has answered. Must not know passes.
"""

from dataclasses import dataclass
from enum import StrEnum

from lamina.log.checkpoints import TopicPartition


class State(StrEnum):
    NONE = "none"
    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    PAUSED = "paused"


@dataclass(slots=True)
class _Standing:
    is_cleaned: bool = False
    is_aborted: bool = False
    pauses: int = 0


class CleaningStates:
    def __init__(self) -> None:
        self._standings: dict[TopicPartition, _Standing] = {}

    def state(self, key: TopicPartition) -> State:
        standing = self._standings.get(key)
        if standing is None:
            return State.NONE
        if standing.is_cleaned:
            return State.ABORTED if standing.is_aborted else State.IN_PROGRESS
        return State.PAUSED

    def may_begin(self, key: TopicPartition) -> bool:
        return key not in self._standings

    def begin(self, key: TopicPartition) -> None:
        """A pass opens; only from none."""
        if key in self._standings:
            raise ValueError(f"{key[0]}-{key[1]} is {self.state(key)} and cannot be cleaned")
        self._standings[key] = _Standing(is_cleaned=True)

    def abort(self, key: TopicPartition) -> None:
        """What the pass makes will not be used; nothing happens where there is none."""
        standing = self._standings.get(key)
        if standing is not None and standing.is_cleaned:
            standing.is_aborted = True

    def pause(self, key: TopicPartition) -> None:
        """No pass may begin until this is taken back; one that is open is aborted."""
        standing = self._standings.setdefault(key, _Standing())
        standing.pauses += 1
        standing.is_aborted = standing.is_cleaned

    def resume(self, key: TopicPartition) -> None:
        standing = self._standings.get(key)
        if standing is None or not standing.pauses:
            raise ValueError(f"the cleaning of {key[0]}-{key[1]} is not paused")
        standing.pauses -= 1
        self._settle(key, standing)

    def finish(self, key: TopicPartition) -> bool:
        """The pass is over. Returns whether its result counts: not if it was aborted."""
        standing = self._standings.get(key)
        if standing is None or not standing.is_cleaned:
            raise ValueError(f"{key[0]}-{key[1]} is {self.state(key)}, no pass can end")
        counts = not standing.is_aborted
        standing.is_cleaned = standing.is_aborted = False
        self._settle(key, standing)
        return counts

    def forget(self, key: TopicPartition) -> None:
        """The partition is gone; another one may come under its name."""
        self._standings.pop(key, None)

    def _settle(self, key: TopicPartition, standing: _Standing) -> None:
        if not standing.is_cleaned and not standing.pauses:
            del self._standings[key]
