"""Who does the passes: what the cleaner asks of an engine, whichever it is.

An engine takes a batch of plans and gives back one answer for each; it never touches a name in a partition's directory.
Must not know how a plan came about, nor what becomes of the answer.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from lamina.cleaning.answers import Answer
from lamina.cleaning.contract import Plan

Progress = Callable[[str, int, int], None]
"""Told of a plan by its id how many of how many bytes are done; called on the loop."""


class Engine(Protocol):
    def missing(self) -> str | None:
        """Why no pass can be made here, in half a sentence; ``None`` when all is there. Quick."""

    async def clean(self, plans: Sequence[Plan], progress: Progress) -> list[Answer]:
        """One answer for each plan, in any order. What goes wrong is an answer; raises only when it is stopped."""

    def cancel(self, plan_id: str) -> None:
        """Nobody wants this plan's result any more; an engine may stop working on it."""

    async def stop(self) -> None:
        """End now, whatever is under way."""
