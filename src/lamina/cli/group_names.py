"""A group's name on the command line, completed by asking the cluster.

Must not know any command.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lamina.cli.completing import COMPLETION_SECONDS, complete

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

C = TypeVar("C", bound=Callable[..., Any])


def complete_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return complete(ctx, _all_groups, incomplete)


def _all_groups(admin: "AdminClient") -> list[str]:
    asked = admin.list_consumer_groups(request_timeout=COMPLETION_SECONDS)
    return [group.group_id for group in asked.result(COMPLETION_SECONDS).valid]


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
