"""The options of every command that speaks to a cluster.

Must not know any command.
"""

import re
from collections.abc import Callable
from typing import Any

import click

from lamina.cli.options.secrets import client_secret_warning
from lamina.cli.outcome import warn
from lamina.client.cluster import Cluster
from lamina.peer.addresses import DEFAULT_BOOTSTRAP_SERVERS, DEFAULT_PORT
from lamina.settings.properties import PropertiesError, load_given

_ADDRESS = re.compile(
    r"((PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(\[[0-9A-Fa-f:.%]+\]|[^\s\[\]:/,]+)(:(?P<port>[0-9]{1,5}))?"
)

_OPTIONS = (
    click.option(
        "--bootstrap-server",
        metavar="HOST:PORT,…",
        envvar="LAMINA_BOOTSTRAP_SERVERS",
        help=f"The brokers to connect to first.  [env: LAMINA_BOOTSTRAP_SERVERS; default: {DEFAULT_BOOTSTRAP_SERVERS}]",
    ),
    click.option("--command-config", "properties_file", metavar="FILE", help="A file of Kafka's client properties."),
)

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")


def with_parameters(
    command: Callable[..., int], wrapper: Callable[..., int], *parameters: Callable[[Any], Any]
) -> Callable[..., int]:
    """A wrapper that takes these parameters, and gives the command what they say in another form."""
    wrapper.__doc__ = command.__doc__
    wrapper.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return add_parameters(wrapper, *parameters)


def add_parameters(command: Callable[..., int], *parameters: Callable[[Any], Any]) -> Callable[..., int]:
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


def cluster_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``cluster`` in their place."""

    def with_cluster(*args: Any, bootstrap_server: str | None, properties_file: str | None, **rest: Any) -> int:
        return command(*args, cluster=cluster_from(bootstrap_server, properties_file, warn), **rest)

    return with_parameters(command, with_cluster, *_OPTIONS)


def cluster_from(bootstrap_server: str | None, properties_file: str | None, warn: Callable[[str], None]) -> Cluster:
    """The command line wins over the environment, which wins over the file's ``bootstrap.servers``."""
    properties: dict[str, str] = {}
    if properties_file is not None:
        with open(properties_file, "rb") as opened:
            try:
                properties = load_given(opened.read())
            except PropertiesError as error:
                raise click.BadParameter(f"{properties_file}: {error}", param_hint="--command-config") from error
    in_file = properties.pop("bootstrap.servers", DEFAULT_BOOTSTRAP_SERVERS)
    cluster = Cluster(_checked(in_file if bootstrap_server is None else bootstrap_server), properties, warn)
    if properties_file is not None and (told := client_secret_warning(properties_file, properties)) is not None:
        warn(told)
    return cluster


def _checked(servers: str) -> str:
    """librdkafka would wait in vain for what is no address."""
    for server in servers.split(","):
        address = _ADDRESS.fullmatch(server.strip())
        if address is None or not 0 < int(address["port"] or DEFAULT_PORT) < 2**16:
            raise click.BadParameter(f"{server!r} is not of the form HOST:PORT", param_hint="--bootstrap-server")
    return servers
