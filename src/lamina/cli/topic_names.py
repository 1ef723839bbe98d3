"""A topic's name on the command line, completed by asking the cluster.

Must not know any command.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lamina.cli.completing import COMPLETION_SECONDS, complete

C = TypeVar("C", bound=Callable[..., Any])


def complete_topic(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return complete(ctx, lambda admin: admin.list_topics(timeout=COMPLETION_SECONDS).topics, incomplete)


def checked_names(_: click.Context, __: click.Parameter, given: Any) -> Any:
    """One name, several, or none."""
    names = given if isinstance(given, tuple) else () if given is None else (given,)
    if any(not name.strip() for name in names):
        raise click.BadParameter("a topic's name must not be empty.")
    return given


def topic_argument(required: bool = True) -> Callable[[C], C]:
    metavar = "TOPIC" if required else "[TOPIC]"
    return click.argument(
        "topic", metavar=metavar, required=required, callback=checked_names, shell_complete=complete_topic
    )


def topics_argument(required: bool = True) -> Callable[[C], C]:
    metavar = "TOPIC…" if required else "[TOPIC]…"
    return click.argument(
        "topics", metavar=metavar, nargs=-1, required=required, callback=checked_names, shell_complete=complete_topic
    )
