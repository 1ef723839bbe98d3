"""Why a pass can fail, each in one sentence. All can be pickled: they come from another process.

Must not know who is told.
"""

from lamina.records.faults import damage


class CleaningFailed(Exception):
    """The pass is over and has changed nothing."""


class CorruptLog(CleaningFailed):
    """A batch that is not what its header or its CRC says: it must not be rewritten (fact 93).

    ``path`` is the segment's name in the partition's directory, ``offset`` the first that the bad batch should hold.
    """

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(path, position, offset, reason)
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return damage(self.path, self.position, self.offset, self.reason)


class SourceLost(CleaningFailed):
    """A segment of the plan is not there, or is not as long as the plan says; it is never taken for an empty one."""


class NotEnoughFreeSpace(CleaningFailed):
    """The disk has too little free space for the pass; the sentence has the figures."""


class EngineMissing(CleaningFailed):
    """What a pass is made with is not installed."""


class Cancelled(CleaningFailed):
    """The result is no longer wanted."""


class TooManyKeys(CleaningFailed):
    """The keys do not fit the memory of one task: the log has to go through the shuffle."""
