"""How long the request under way waited, and for what.

Owns the account that a request's task carries with it: what makes it wait adds to it, without knowing the request.
Work that a request begins in other tasks carries the same account. Must not know requests.
"""

from contextvars import ContextVar


class Waits:
    __slots__ = ("parked_ns", "threads_ns")

    def __init__(self) -> None:
        self.parked_ns = 0
        self.threads_ns = 0


WAITS: ContextVar[Waits | None] = ContextVar("waits", default=None)
