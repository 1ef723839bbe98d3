"""Who does the passes: what the cleaner asks of an engine, whichever it is.

An engine takes plans as they come, several at a time, and answers each as soon as it is done; it never touches a name
in a partition's directory. Must not know how a plan came about, nor what becomes of the answer.
"""

from collections.abc import Callable
from typing import Protocol

from lamina.cleaning.answers import Answer
from lamina.cleaning.contract import Plan

Progress = Callable[[int, int], None]
"""Told how many of how many bytes are done; called on the loop."""


class Engine(Protocol):
    def missing(self) -> str | None:
        """Why no pass can be made here, in half a sentence; ``None`` when all is there. Quick."""

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        """Have a plan carried out. What goes wrong is an answer."""

    def cancel(self, plan_id: str) -> None:
        """Nobody wants this plan's result any more: it is answered at once, and an engine stops working on it."""

    async def stop(self) -> None:
        """End now, whatever is under way."""
