"""What settings belong to: one topic, or one broker.

Owns the options that name it. Must not know what is done with the settings.
"""

import difflib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.attempts import Attempts
from lamina.cli.connecting import cluster_options
from lamina.cli.topic_names import checked_names, complete_topic
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigEntry


@dataclass(frozen=True, slots=True)
class Resource:
    type: str
    """``topic`` or ``broker``."""
    name: str

    def __str__(self) -> str:
        return self.name if self.type == "topic" else f"broker {self.name}"

    def check(self, cluster: Cluster) -> None:
        """librdkafka waits a minute for a broker that nobody knows."""
        if self.type != "broker":
            return
        nodes = cluster.answer(cluster.admin().describe_cluster()).nodes
        if int(self.name) not in [node.id for node in nodes]:
            raise ClientError(f"there is no broker {self.name}; `lamina brokers` shows who is there")


def entries_of(cluster: Cluster, resource: Resource, attempts: Attempts) -> "dict[str, ConfigEntry]":
    """Every setting of the resource, by name in order; none if the attempt failed."""
    from confluent_kafka.admin import ConfigResource

    resource.check(cluster)
    futures = cluster.admin().describe_configs([ConfigResource(resource.type, resource.name)])
    for _, entries in attempts.answers((str(resource), future) for future in futures.values()):
        return dict(sorted(entries.items()))
    return {}


def check_names(resource: Resource, names: Iterable[str], known: Collection[str], attempts: Attempts) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name[:100], known, n=1)
            advice = f"did you mean {near[0]}?" if near else "`lamina configs get --all` shows every name"
            attempts.fail(str(resource), ClientError(f"there is no setting {name!r}; {advice}"))


def resource_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``resource`` and ``cluster`` in their place."""

    def with_resource(*args: Any, topic: str | None, broker: int | None, **rest: Any) -> int:
        if (topic is None) == (broker is None):
            raise click.UsageError("Say whose settings: --topic or --broker, one of them.")
        resource = Resource("topic", topic) if topic is not None else Resource("broker", str(broker))
        return command(*args, resource=resource, **rest)

    with_resource.__doc__ = command.__doc__
    with_resource.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    decorated = cluster_options(with_resource)
    decorated = click.option("--broker", metavar="ID", type=click.IntRange(0, 2**31 - 1), help="A broker's settings.")(
        decorated
    )
    return click.option(
        "--topic",
        metavar="TOPIC",
        callback=checked_names,
        shell_complete=complete_topic,
        help="A topic's settings.",
    )(decorated)
