"""Names of topics and groups on the command line, completed by asking the cluster.

A name is an argument. Kafka's tools take it by ``--topic`` and ``--group``, which is understood as well, and not shown
in help. Must not know any command.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.options.cluster import cluster_from, with_parameters
from lamina.image.topic import INTERNAL_TOPICS

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_COMPLETION_SECONDS = 1.0
"""A shell waits this long at most; it is then as if there were no names."""

Command = Callable[..., int]

internal_option = click.option("--internal", is_flag=True, help="Also internal topics, such as __consumer_offsets.")


def complete_topic(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _complete(ctx, lambda admin: admin.list_topics(timeout=_COMPLETION_SECONDS).topics, incomplete)


def complete_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _complete(ctx, _all_groups, incomplete)


def _all_groups(admin: "AdminClient") -> list[str]:
    asked = admin.list_consumer_groups(request_timeout=_COMPLETION_SECONDS)
    return [group.group_id for group in asked.result(_COMPLETION_SECONDS).valid]


def _complete(ctx: click.Context, names: "Callable[[AdminClient], Iterable[str]]", incomplete: str) -> list[str]:
    """Those of the names that begin so, in order; none if the cluster does not tell in time."""
    from concurrent.futures import TimeoutError as FutureTimeoutError

    from confluent_kafka import KafkaException

    from lamina.client.errors import ClientError

    options = ctx.params
    try:
        cluster = cluster_from(options.get("bootstrap_server"), options.get("properties_file"), lambda _: None)
        found = names(cluster.untried_admin())
    except (ClientError, click.UsageError, KafkaException, OSError, FutureTimeoutError):
        return []
    return sorted(name for name in found if name.startswith(incomplete))


def checked_names(_: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """One name, several, or none."""
    names = given if isinstance(given, tuple) else () if given is None else (given,)
    if any(not name.strip() for name in names):
        noun = "group" if str(parameter.name).startswith("group") else "topic"
        raise click.BadParameter(f"the name of a {noun} must not be empty")
    return given


def is_shown(topic: str, named: str | None, internal: bool) -> bool:
    """Whether a row of a topic is shown: internal topics only with ``--internal``, or if one is named."""
    return internal or named is not None or topic not in INTERNAL_TOPICS


def topic_argument(required: bool = True) -> Callable[[Command], Command]:
    return _one("topic", complete_topic, required)


def topics_argument(required: bool = True) -> Callable[[Command], Command]:
    return _several("topic", complete_topic, required)


def group_argument() -> Callable[[Command], Command]:
    return _one("group", complete_group, required=True)


def groups_argument(required: bool = True) -> Callable[[Command], Command]:
    return _several("group", complete_group, required)


Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _one(noun: str, complete: Complete, required: bool) -> Callable[[Command], Command]:
    metavar = noun.upper()

    def decorate(command: Command) -> Command:
        def with_name(*args: Any, **given: Any) -> int:
            as_argument, as_option = given.pop(noun), given.pop(f"{noun}_option")
            if as_argument is not None and as_option is not None:
                raise click.UsageError(f"Give {metavar} or --{noun}, not both.")
            name = as_option if as_argument is None else as_argument
            if name is None and required:
                raise click.UsageError(f"Missing argument '{metavar}'.")
            return command(*args, **{noun: name}, **given)

        how: dict[str, Any] = {"callback": checked_names, "shell_complete": complete}
        return with_parameters(
            command,
            with_name,
            click.argument(noun, metavar=metavar if required else f"[{metavar}]", required=False, **how),
            click.option(f"--{noun}", f"{noun}_option", hidden=True, **how),
        )

    return decorate


def _several(noun: str, complete: Complete, required: bool) -> Callable[[Command], Command]:
    """The command is given a tuple under the plural."""
    metavar = f"{noun.upper()}…" if required else f"[{noun.upper()}]…"

    def decorate(command: Command) -> Command:
        def with_names(*args: Any, **given: Any) -> int:
            names = (*given.pop(f"{noun}s"), *given.pop(f"{noun}_option"))
            if required and not names:
                raise click.UsageError(f"Missing argument '{metavar}'.")
            return command(*args, **{f"{noun}s": names}, **given)

        how: dict[str, Any] = {"callback": checked_names, "shell_complete": complete}
        return with_parameters(
            command,
            with_names,
            click.argument(f"{noun}s", metavar=metavar, nargs=-1, required=False, **how),
            click.option(f"--{noun}", f"{noun}_option", multiple=True, hidden=True, **how),
        )

    return decorate
