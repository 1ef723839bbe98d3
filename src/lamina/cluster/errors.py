"""Why a cluster on this machine cannot do what is asked, each in one sentence that says what to type instead."""

from collections.abc import Collection
from pathlib import Path

from lamina.cluster.layout import command_for, member_argument, member_text


class ClusterError(Exception):
    """The cluster cannot do what was asked; its text is one sentence."""


def no_cluster(directory: Path) -> ClusterError:
    return ClusterError(
        f"there is no cluster in {directory}: name its directory with --data-dir DIR, or start one with "
        f"`{command_for(directory, 'up')}`"
    )


def is_of_one_broker(directory: Path) -> ClusterError:
    return ClusterError(
        f"{directory} has the records of one broker, and a cluster would not see them: make that broker the first of a "
        "cluster with `lamina cluster adopt`, or name another directory with --data-dir DIR"
    )


def runs_already(directory: Path, what: str) -> ClusterError:
    status, stop = command_for(directory, "status"), command_for(directory, "stop")
    return ClusterError(
        f"the cluster in {directory} is already running ({what}): look at it with `{status}`, end it with `{stop}`"
    )


def runs_not(directory: Path) -> ClusterError:
    return ClusterError(f"the cluster in {directory} is not running: start it with `{command_for(directory, 'up')}`")


def no_broker(broker_id: int, known: Collection[int]) -> ClusterError:
    there = f"there is only broker {min(known)}" if len(known) == 1 else f"there are {', '.join(map(str, known))}"
    return ClusterError(f"there is no broker {broker_id}: {there}")


def last_broker(broker_id: int) -> ClusterError:
    return ClusterError(f"broker {broker_id} is the only one: end the cluster with `lamina cluster stop` instead")


def keeps_replicas(broker_id: int, count: str, bootstrap_servers: str) -> ClusterError:
    return ClusterError(
        f"broker {broker_id} keeps replicas of {count}: move them away first, with "
        f"`lamina brokers decommission {broker_id} --bootstrap-server {bootstrap_servers}`"
    )


def member_runs_not(directory: Path, name: str) -> ClusterError:
    restart = command_for(directory, f"restart {member_argument(name)}")
    return ClusterError(f"{member_text(name)} is not running: start it with `{restart}`")
