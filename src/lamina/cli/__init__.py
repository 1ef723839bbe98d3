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
from lamina.cli.outcome import (
    BAD_INPUT,
    BROKEN_PIPE,
    FINE,
    INTERRUPTED,
    OUR_FAULT,
    SOMETHING_WRONG,
    UNREACHABLE,
    describe,
    warn,
)
from lamina.cli.usage import sentence
from lamina.client.errors import ClientError, Unreachable

_NAME = "lamina"
_COMPLETION = "_LAMINA_COMPLETE"
"""What a shell sets to ask for completions."""


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
        warn(f"{name}: {error}; this is a bug in lamina: run it with --debug and report it")
        status = OUR_FAULT
    sys.exit(status)


def _run(args: Sequence[str] | None, invocation: Invocation) -> int:
    """Not click's own ``main``, which ends with status 1 when the reader of a pipe goes: that is verify's verdict."""
    instruction = os.environ.get(_COMPLETION)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, _NAME, _COMPLETION, instruction)
    try:
        with app.make_context(_NAME, list(sys.argv[1:] if args is None else args), obj=invocation) as context:
            status = app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        warn(sentence(error))
        return BAD_INPUT
    except ClientError as error:
        if invocation.debug:
            raise
        warn(str(error))
        return UNREACHABLE if isinstance(error, Unreachable) else SOMETHING_WRONG
    except BrokenPipeError:
        raise
    except OSError as error:
        if invocation.debug:
            raise
        warn(describe(error))
        return BAD_INPUT
    return status if isinstance(status, int) else FINE
