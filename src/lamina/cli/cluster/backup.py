"""``lamina cluster backup``: shows what ``lamina.offline`` backs up of a cluster."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.settings import settings_from
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.backups import partition_facts, summary_facts
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import counted
from lamina.client.cluster import Cluster
from lamina.cluster.errors import ClusterError
from lamina.cluster.local_cluster import LocalCluster
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError

if TYPE_CHECKING:
    from lamina.offline.cluster_backup import ClusterBackup


@click.command(
    "backup",
    epilog="""\b
Exit status: 0 fine, 1 no backup was made, or it lacks partitions that could not be read, 2 bad input.

\b
Examples:
  lamina cluster backup --zookeeper m1:2181,m2:2181/lamina --bootstrap-server m1:9092 /backups/monday
  lamina cluster backup --data-dir lamina-cluster /backups/monday
  lamina cluster backup --config server.properties --bootstrap-server m1:9092 /backups/monday
  lamina verify --dir /backups/monday/logs""",
)
@click.option("--config", "file", metavar="FILE", help="The server.properties of a broker: how to reach ZooKeeper.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Any setting by Kafka's name, as for serve.")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT,…/CHROOT",
    help="The cluster's ZooKeeper ensemble; the same as --set zookeeper.connect=….",
)
@click.option("--data-dir", metavar="DIR", help="The directory of a cluster on this machine, instead of addresses.")
@as_json_option
@cluster_options
@click.argument("target", metavar="TARGET")
def backup(
    cluster: Cluster,
    file: str | None,
    sets: tuple[str, ...],
    zookeeper: str | None,
    data_dir: str | None,
    as_json: bool,
    target: str,
) -> int:
    """Back up a whole cluster while it runs, from any machine that reaches its brokers and its ZooKeeper.

    TARGET must not exist. Each partition is read once, from its leader, as far as its records are committed; with it
    come topics, settings, groups and transactions.
    """
    from lamina.cli.printing.progress import bar
    from lamina.log.backup.copier import BackupError
    from lamina.log.files import Disk
    from lamina.offline.backup_target import BackupRefused
    from lamina.offline.cluster_backup import take_cluster_backup
    from lamina.settings.zookeeper_options import zookeeper_options
    from lamina.store.interface import StoreError
    from lamina.store.opening import connect

    if data_dir is not None:
        if file is not None or zookeeper is not None:
            raise click.UsageError("--data-dir says where ZooKeeper is: leave --zookeeper and --config out.")
        local = LocalCluster(Path(data_dir))
        try:
            zookeeper, cluster = local.zookeeper_address(), Cluster(local.bootstrap_servers())
        except ClusterError as error:
            warn(str(error))
            return BAD_INPUT
    try:
        options = zookeeper_options(settings_from(file, None, None, sets, **{"zookeeper.connect": zookeeper}))
        if options is None:
            raise SettingError(
                "the cluster has a ZooKeeper: name it with --zookeeper or zookeeper.connect, or name the directory of "
                "a cluster on this machine with --data-dir"
            )
        with closing(connect(options)) as store, bar("reading records", of_bytes=False) as advance:
            made = cluster.ask(lambda peers: take_cluster_backup(peers, store, target, Disk(), advance))
    except (SettingError, PropertiesError, BackupRefused) as error:
        warn(str(error))
        return BAD_INPUT
    except (BackupError, StoreError) as error:
        warn(f"{error}; no backup was made")
        return SOMETHING_WRONG
    (_print_json if as_json else _print_table)(made)
    for name, why in made.missing.items():
        warn(f"{name} is not in the backup: {why}")
    return SOMETHING_WRONG if made.missing else FINE


def _print_table(made: "ClusterBackup") -> None:
    """Partitions without a record are only counted: brokers keep many of them for themselves."""
    partitions = made.manifest.partitions
    filled = [one for one in partitions if one.end_offset > one.log_start_offset]
    print_table(
        ("topic", "partition", "log start", "log end", "segments", "bytes"),
        (
            (
                one.topic,
                *map(str, (one.partition, one.log_start_offset, one.end_offset, len(one.segments), one.size_bytes)),
            )
            for one in filled
        ),
    )
    if len(filled) < len(partitions):
        click.echo(f"Not shown: {counted(len(partitions) - len(filled), 'empty partition')}.")
    for name in made.deleted:
        click.echo(f"Left out: {name}, which was deleted meanwhile.")
    click.echo(conclusion(made))
    click.echo(f"To restore it, for each broker: lamina cluster restore {made.target} --config server.properties")


def conclusion(made: "ClusterBackup") -> str:
    if made.missing:
        return f"Backup made without {counted(len(made.missing), 'partition')}: {made.target}"
    return f"Backup complete: {made.target}"


def _print_json(made: "ClusterBackup") -> None:
    for one in made.manifest.partitions:
        print_json(partition_facts(one))
    summary = summary_facts(made.target, made.manifest)
    print_json({**summary, "deleted_topics": list(made.deleted), "missing": list(made.missing)})
