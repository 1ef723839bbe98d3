"""A group's name on the command line, completed by asking the cluster.

Must not know any command.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])

_COMPLETION_SECONDS = 1.0
"""A shell waits this long at most; it is then as if there were no groups."""


def complete_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from concurrent.futures import TimeoutError as FutureTimeoutError

    from confluent_kafka import KafkaException

    from lamina.cli.connecting import cluster_from
    from lamina.client.errors import ClientError

    options = ctx.params
    try:
        cluster = cluster_from(options.get("bootstrap_server"), options.get("properties_file"), lambda _: None)
        asked = cluster.untried_admin().list_consumer_groups(request_timeout=_COMPLETION_SECONDS)
        groups = asked.result(_COMPLETION_SECONDS).valid
    except (ClientError, click.UsageError, KafkaException, OSError, FutureTimeoutError):
        return []
    return sorted(group.group_id for group in groups if group.group_id.startswith(incomplete))


def checked_groups(_: click.Context, __: click.Parameter, given: Any) -> Any:
    """One name, several, or none."""
    names = given if isinstance(given, tuple) else () if given is None else (given,)
    if any(not name for name in names):
        raise click.BadParameter("a group's name must not be empty.")
    return given


def group_argument() -> Callable[[C], C]:
    return click.argument("group", metavar="GROUP", callback=checked_groups, shell_complete=complete_group)


def groups_argument(required: bool = True) -> Callable[[C], C]:
    metavar = "GROUP…" if required else "[GROUP]…"
    return click.argument(
        "groups", metavar=metavar, nargs=-1, required=required, callback=checked_groups, shell_complete=complete_group
    )
