"""Deleting by name, after a question.

Must not know what is deleted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from lamina.cli.attempts import Attempts
from lamina.cli.connecting import confirm

if TYPE_CHECKING:
    from concurrent.futures import Future


def delete_found(
    attempts: Attempts,
    found: Sequence[str],
    goes_with: str,
    delete: "Callable[[list[str]], Mapping[str, Future[None]]]",
    yes: bool,
) -> int:
    """Delete what was found, if somebody agrees to lose what goes with it. Returns the command's status."""
    if found:
        confirm(f"Delete {', '.join(found)} with {goes_with}?", yes)
        for name, _ in attempts.answers(delete(list(found)).items()):
            click.echo(f"{name}: deleted")
    return attempts.status
