"""The option by which every command of a cluster on this machine finds it, and how its refusals are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lamina.cli.options.cluster import with_parameters
from lamina.cli.options.numbers import whole
from lamina.cli.outcome import BAD_INPUT, SOMETHING_WRONG, warn
from lamina.cluster.errors import ClusterError
from lamina.cluster.layout import DEFAULT_DIRECTORY, ZOOKEEPER
from lamina.cluster.local_cluster import LocalCluster
from lamina.settings.definition import SettingError

_OPTION = click.option("--data-dir", metavar="DIR", help=f"The cluster's directory.  [default: ./{DEFAULT_DIRECTORY}]")


def _member(given: str | int) -> int | str:
    return ZOOKEEPER if given == ZOOKEEPER else whole(1)(given)


member_argument = click.argument("member", metavar="N|zookeeper", type=_member)
"""The id of a broker, or ``zookeeper``."""


def local_cluster_option(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the option; the command is given ``cluster`` in its place."""

    def with_cluster(*args: Any, data_dir: str | None, **rest: Any) -> int:
        try:
            return command(*args, cluster=LocalCluster(Path(data_dir or DEFAULT_DIRECTORY)), **rest)
        except ClusterError as error:
            warn(str(error))
            return SOMETHING_WRONG
        except SettingError as error:
            warn(str(error))
            return BAD_INPUT

    return with_parameters(command, with_cluster, _OPTION)
