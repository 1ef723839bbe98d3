"""Names on the command line, completed by asking the cluster.

Must not know what is named, nor any command.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

COMPLETION_SECONDS = 1.0
"""A shell waits this long at most; it is then as if there were no names."""


def complete(ctx: click.Context, names: "Callable[[AdminClient], Iterable[str]]", incomplete: str) -> list[str]:
    """Those of the names that begin so, in order; none if the cluster does not tell in time."""
    from concurrent.futures import TimeoutError as FutureTimeoutError

    from confluent_kafka import KafkaException

    from lamina.cli.connecting import cluster_from
    from lamina.client.errors import ClientError

    options = ctx.params
    try:
        cluster = cluster_from(options.get("bootstrap_server"), options.get("properties_file"), lambda _: None)
        found = names(cluster.untried_admin())
    except (ClientError, click.UsageError, KafkaException, OSError, FutureTimeoutError):
        return []
    return sorted(name for name in found if name.startswith(incomplete))
