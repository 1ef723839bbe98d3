"""The question before what cannot be undone.

Must not know what is done.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from lamina.cli.outcome import Attempts
from lamina.cli.usage import NotConfirmed

if TYPE_CHECKING:
    from concurrent.futures import Future

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, yes: bool) -> None:
    """Ask a person; without a terminal ``--yes`` must have been given."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmed(question)
    click.confirm(question, abort=True, err=True)


def delete_found(
    attempts: Attempts,
    noun: str,
    found: Sequence[str],
    goes_with: str,
    delete: "Callable[[list[str]], Mapping[str, Future[None]]]",
    yes: bool,
    tell: Callable[[str], None] | None = None,
) -> int:
    """Delete what was found, if somebody agrees to lose what goes with it. Returns the command's status.

    ``tell`` is called with each name that is gone; without it a line is printed.
    """
    if found:
        confirm(f"Delete {noun if len(found) == 1 else f'{noun}s'} {', '.join(found)} with {goes_with}?", yes)
        for name, _ in attempts.answers(delete(list(found)).items()):
            if tell is None:
                click.echo(f"Deleted {noun} {name}.")
            else:
                tell(name)
    return attempts.status
