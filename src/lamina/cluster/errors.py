"""Why a cluster on this machine cannot do what is asked, each in one sentence that says what to type instead."""

from collections.abc import Iterable
from pathlib import Path


class ClusterError(Exception):
    """The cluster cannot do what was asked; its text is one sentence."""


def no_cluster(directory: Path) -> ClusterError:
    return ClusterError(
        f"there is no cluster in {directory}: name its directory with --data-dir DIR, or start one with "
        "`lamina cluster up`"
    )


def runs_already(directory: Path, what: str) -> ClusterError:
    return ClusterError(
        f"the cluster in {directory} is already running ({what}): look at it with `lamina cluster status --data-dir "
        f"{directory}`, end it with `lamina cluster stop --data-dir {directory}`"
    )


def no_zookeeper(directory: Path, *, has_brokers: bool) -> ClusterError:
    if has_brokers:
        return ClusterError(
            f"ZooKeeper is not running: start it with `lamina cluster restart zookeeper --data-dir {directory}`"
        )
    return ClusterError(
        f"the cluster in {directory} is not running: start it with `lamina cluster up --data-dir {directory}`"
    )


def no_broker(broker_id: int, known: Iterable[int]) -> ClusterError:
    return ClusterError(f"there is no broker {broker_id}: there are {', '.join(map(str, known))}")


def does_not_run(what: str, name: str, directory: Path) -> ClusterError:
    return ClusterError(f"{what} is not running: start it with `lamina cluster restart {name} --data-dir {directory}`")
