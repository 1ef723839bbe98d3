"""What settings belong to: one topic, one broker, or all brokers.

Owns the options that name it. Must not know what is done with the settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from lamina.cli.options.cluster import add_parameters, cluster_options, with_parameters
from lamina.cli.options.names import checked_names, complete_topic
from lamina.cli.options.numbers import PARTITION_MAX, whole

_OPTIONS = (
    click.option(
        "--topic",
        metavar="TOPIC",
        callback=checked_names,
        shell_complete=complete_topic,
        help="The settings of this topic.",
    ),
    click.option("--broker", metavar="ID", type=whole(largest=PARTITION_MAX), help="The settings of this broker."),
    click.option("--broker-default", is_flag=True, help="The settings of all brokers that have none of their own."),
)


@dataclass(frozen=True, slots=True)
class Resource:
    type: str
    """``topic`` or ``broker``."""
    name: str
    """A topic's name, or a broker's id; empty for all brokers."""

    @property
    def is_every_broker(self) -> bool:
        return self.type == "broker" and not self.name

    def __str__(self) -> str:
        return self.name if self.type == "topic" else f"broker {self.name}" if self.name else "all brokers"


def _meant(given: Mapping[str, Any]) -> str:
    """Whoever begins with the topic is told how to name it."""
    from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS

    words: tuple[str, ...] = given.get("settings") or given.get("names") or ()
    if not words or "=" in words[0] or words[0] in {*TOPIC_SETTINGS, *BROKER_SETTINGS}:
        return "."
    return f": did you mean --topic {words[0]}?"


def resource_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``resource`` and ``cluster`` in their place."""

    def with_resource(*args: Any, topic: str | None, broker: int | None, broker_default: bool, **rest: Any) -> int:
        if sum((topic is not None, broker is not None, broker_default)) != 1:
            raise click.UsageError(f"Give one of --topic, --broker and --broker-default{_meant(rest)}")
        broker_name = "" if broker is None else str(broker)
        resource = Resource("broker", broker_name) if topic is None else Resource("topic", topic)
        return command(*args, resource=resource, **rest)

    return add_parameters(cluster_options(with_parameters(command, with_resource)), *_OPTIONS)
