"""The ``lamina`` command: what it ends with, and what a person is told when something goes wrong.

Owns the way out: exit statuses (docs/cli.md), one sentence for every error, a traceback only with ``--debug``,
silence when the reader of a pipe has gone. Commands live in modules of their own, loaded when they are called.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from lamina.cli.app import Invocation, app
from lamina.cli.refusals import describe
from lamina.cli.status import BAD_INPUT, BROKEN_PIPE, INTERRUPTED, OUR_FAULT


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit with its status."""
    invocation = Invocation()
    try:
        status = _run(args, invocation)
    except BrokenPipeError:
        # Python flushes stdout once more at exit and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = BROKEN_PIPE
    except (click.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except Exception as error:
        if invocation.debug:
            raise
        name = type(error).__name__
        click.echo(f"lamina: {name}: {error}; this is a fault of lamina: run with --debug and report it", err=True)
        status = OUR_FAULT
    sys.exit(status)


def _run(args: Sequence[str] | None, invocation: Invocation) -> int:
    try:
        status = app.main(args, prog_name="lamina", standalone_mode=False, obj=invocation)
        sys.stdout.flush()
    except click.ClickException as error:
        if isinstance(error, click.UsageError):
            error.show()
        else:
            click.echo(f"lamina: {error.format_message()}", err=True)
        return error.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:
        if invocation.debug:
            raise
        click.echo(f"lamina: {describe(error)}", err=True)
        return BAD_INPUT
    return status if isinstance(status, int) else 0
