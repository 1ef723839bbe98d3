"""The options of every command that asks a broker's admin listener.

Must not know any route.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lamina.cli.options.cluster import cluster_options, with_parameters
from lamina.cli.usage import Complete
from lamina.client.admin_listener import TOKEN_FILE, TOKEN_VARIABLE, AdminListener, Token, find_admin_listener
from lamina.client.cluster import Cluster

_DEFAULT_TOKEN_FILE = f"lamina-data/{TOKEN_FILE}"

_OPTIONS = (
    click.option(
        "--broker", "broker_id", metavar="ID", help="The broker to ask.  [default: the one with the lowest id]"
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        help=f"The {TOKEN_FILE} in the broker's data directory; needed for changes, and by explain.  "
        f"[env: {TOKEN_VARIABLE}, the token itself; default: {_DEFAULT_TOKEN_FILE}]",
    ),
)


FindListener = Callable[[], AdminListener]


def admin_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options, and those of a cluster; the command is given ``listener`` in their place."""

    def with_listener(*args: Any, find_listener: FindListener, **rest: Any) -> int:
        return command(*args, listener=find_listener(), **rest)

    return lazy_admin_options(with_parameters(command, with_listener))


def lazy_admin_options(command: Callable[..., int]) -> Callable[..., int]:
    """The same for a command that may not need the listener: it is given ``find_listener``."""

    def with_finder(*args: Any, cluster: Cluster, broker_id: str | None, token_file: str | None, **rest: Any) -> int:
        return command(
            *args, find_listener=lambda: find_admin_listener(cluster, broker_id, token_from(token_file)), **rest
        )

    return cluster_options(with_parameters(command, with_finder, *_OPTIONS))


def token_from(file: str | None) -> Token | None:
    """From the file that is named, else from the environment, else from where `lamina serve` keeps it by default."""
    if file is None:
        if TOKEN_VARIABLE in os.environ:
            return Token(os.environ[TOKEN_VARIABLE], TOKEN_VARIABLE)
        file = _DEFAULT_TOKEN_FILE
        try:
            if not Path(file).exists():
                return None
        except OSError as error:
            raise _unreadable(file, error) from error
    try:
        return Token(Path(file).read_text(encoding="ascii", errors="replace").strip(), file)
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: str, error: OSError) -> click.UsageError:
    return Complete(
        f"the admin token file {file} cannot be read: {(error.strerror or str(error)).lower()}; run this as the user "
        f"that the broker runs as, name another file with --token-file, or put the token into {TOKEN_VARIABLE}"
    )
