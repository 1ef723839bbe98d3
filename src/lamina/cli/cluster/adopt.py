"""``lamina cluster adopt``: shows how ``lamina.offline`` makes a broker the first of a cluster."""

import shlex
from typing import TYPE_CHECKING

import click

from lamina.cli.options.settings import settings_from, settings_options
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import counted
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError

if TYPE_CHECKING:
    from lamina.offline.cluster_adopt import ClusterAdoption


@click.command(
    "adopt",
    epilog="""\b
Exit status: 0 fine, 1 the broker is not a member of a cluster, 2 bad settings.

\b
Examples:
  lamina cluster adopt --data-dir /var/lib/lamina --zookeeper m1:2181,m2:2181,m3:2181/lamina --dry-run
  lamina cluster adopt --config server.properties --zookeeper m1:2181,m2:2181,m3:2181/lamina""",
)
@settings_options
@click.option(
    "--zookeeper",
    metavar="HOST:PORT,…/CHROOT",
    help="The ZooKeeper ensemble of the new cluster; the same as --set zookeeper.connect=….",
)
@click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def adopt(
    file: str | None,
    data_dir: str | None,
    node_id: str | None,
    sets: tuple[str, ...],
    zookeeper: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make a broker that was a cluster by itself the first broker of a new cluster.

    The broker must be stopped; its options are those of `lamina serve`. Topics, their ids and settings move to
    ZooKeeper; records, groups and transactions stay in the logs. Nothing is copied. Run it again if it was interrupted.
    """
    from lamina.log.files import Disk
    from lamina.offline.cluster_adopt import ClusterAdoptionError, adopt_cluster
    from lamina.settings.zookeeper_options import zookeeper_options
    from lamina.store.opening import connect

    try:
        settings = settings_from(file, data_dir, node_id, sets, **{"zookeeper.connect": zookeeper})
        options = zookeeper_options(settings)
        if options is None:
            raise SettingError("the cluster needs a ZooKeeper: name it with --zookeeper or zookeeper.connect")
        adoption = adopt_cluster(settings, lambda: connect(options), Disk(), is_dry_run=dry_run)
    except (SettingError, PropertiesError) as error:
        warn(str(error))
        return BAD_INPUT
    except ClusterAdoptionError as error:
        warn(str(error))
        return SOMETHING_WRONG
    flags = [f"--config={file}"] if file is not None else []
    flags += [f"--data-dir={adoption.data_directory}"] if file is None or data_dir is not None else []
    flags += [f"--zookeeper={zookeeper}"] if zookeeper is not None else []
    flags += [f"--set={text}" for text in sets]
    _print(adoption, shlex.join(["lamina", "serve", f"--node-id={adoption.node_id}", *flags]), dry_run, as_json)
    return FINE


def _print(adoption: "ClusterAdoption", start: str, is_dry_run: bool, as_json: bool) -> None:
    topics = {} if adoption.image is None else adoption.image.topics
    partitions = sum(len(topic.partitions) for topic in topics.values())
    if as_json:
        print_json(
            {
                "type": "adopted",
                "data_dir": adoption.data_directory,
                "cluster_id": adoption.cluster_id,
                "node_id": adoption.node_id,
                "topics": len(topics),
                "partitions": partitions,
                "dry_run": is_dry_run,
                "done_before": adoption.is_done_before,
                "next": start,
            }
        )
        return
    broker = f"broker {adoption.node_id} of cluster {adoption.cluster_id}"
    if adoption.is_done_before:
        click.echo(f"{adoption.data_directory} is that of {broker} already.")
    elif adoption.image is None:
        verb = "would finish" if is_dry_run else "finished"
        click.echo(f"An earlier run was interrupted: this one {verb} it. {adoption.data_directory} is {broker}.")
    elif is_dry_run:
        moved = f"{counted(len(topics), 'topic')} with {counted(partitions, 'partition')}"
        click.echo(f"{adoption.data_directory} can become {broker}: {moved} would move to ZooKeeper.")
        return
    else:
        moved = f"{counted(len(topics), 'topic')} with {counted(partitions, 'partition')}"
        click.echo(f"{adoption.data_directory} is now {broker}: {moved} moved to ZooKeeper.")
    click.echo(f"To start it: {start}")
    click.echo(
        "Each partition still has one replica. Start more brokers, then give it others: "
        "lamina topics reassign --generate --replication-factor 3 --brokers 1,2,3 --all > plan.json, then --execute"
    )
