"""A topic's name on the command line, completed by asking the cluster.

Must not know any command.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])

_COMPLETION_SECONDS = 1.0
"""A shell waits this long at most; it is then as if there were no topics."""


def complete_topic(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from confluent_kafka import KafkaException

    from lamina.cli.connecting import cluster_from
    from lamina.client.errors import ClientError

    options = ctx.params
    try:
        cluster = cluster_from(options.get("bootstrap_server"), options.get("properties_file"), lambda _: None)
        topics = cluster.untried_admin().list_topics(timeout=_COMPLETION_SECONDS).topics
    except (ClientError, click.UsageError, KafkaException, OSError):
        return []
    return [topic for topic in sorted(topics) if topic.startswith(incomplete)]


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
