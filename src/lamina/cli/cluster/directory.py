"""The option by which every command of a cluster on this machine finds it, and how its refusals are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lamina.cli.options.cluster import with_parameters
from lamina.cli.outcome import BAD_INPUT, SOMETHING_WRONG, warn
from lamina.cli.usage import Complete
from lamina.cluster.errors import ClusterError
from lamina.cluster.layout import DEFAULT_DIRECTORY, ZOOKEEPER
from lamina.cluster.local_cluster import LocalCluster
from lamina.settings.definition import SettingError

_OPTION = click.option("--data-dir", metavar="DIR", help=f"The cluster's directory.  [default: ./{DEFAULT_DIRECTORY}]")


member_argument = click.argument("member", metavar="N|zookeeper")
"""The id of a broker, or ``zookeeper``; read with :func:`member_from`."""


def member_from(cluster: LocalCluster, given: str) -> int | str:
    return ZOOKEEPER if given == ZOOKEEPER else broker_from(cluster, given, f"or {ZOOKEEPER}")


def broker_from(cluster: LocalCluster, given: str, otherwise: str) -> int:
    """``otherwise`` is what else may be given."""
    if given.isdecimal():
        return int(given)
    ids = ", ".join(map(str, cluster.state().brokers))
    raise Complete(f"'{given}' is not a broker: name a broker ({ids}) {otherwise}")


def local_cluster_option(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the option; the command is given ``cluster`` in its place."""

    def with_cluster(*args: Any, data_dir: str | None, **rest: Any) -> int:
        directory = Path(data_dir or DEFAULT_DIRECTORY)
        for path in (directory, *directory.parents):
            if path.exists() and not path.is_dir():
                raise Complete(f"{path} is a file: name a directory")
        try:
            return command(*args, cluster=LocalCluster(directory), **rest)
        except ClusterError as error:
            warn(str(error))
            return SOMETHING_WRONG
        except SettingError as error:
            warn(str(error))
            return BAD_INPUT

    return with_parameters(command, with_cluster, _OPTION)
