"""``lamina cluster restore``: shows what ``lamina.offline`` restores of a cluster."""

from functools import partial
from typing import TYPE_CHECKING

import click

from lamina.cli.options.settings import serve_line, settings_from, settings_options
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import bytes_text, counted
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError

if TYPE_CHECKING:
    from lamina.offline.cluster_restore import ClusterRestored


@click.command(
    "restore",
    epilog="""\b
Exit status: 0 fine, 1 this broker was not restored, 2 bad input.

\b
Examples:
  lamina cluster restore /backups/monday --config server.properties
  lamina cluster restore /backups/monday --node-id 2 --data-dir /var/lib/lamina --zookeeper m1:2181,m2:2181/lamina2""",
)
@partial(settings_options, node_id_help="The id of the broker to restore.  [default: node.id in FILE]")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT,…/CHROOT",
    help="An ensemble, or a chroot, without a cluster; the same as --set zookeeper.connect=….",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("backup", metavar="BACKUP")
def restore(
    file: str | None,
    data_dir: str | None,
    node_id: str | None,
    sets: tuple[str, ...],
    zookeeper: str | None,
    as_json: bool,
    backup: str,
) -> int:
    """Restore one broker of a cluster from its backup: run it for each broker, on its own machine.

    The options are those of `lamina serve`. The first run fills ZooKeeper. Each broker gets one replica of its share of
    the partitions; the other replicas are copied from there once the brokers run. The cluster gets a new id.
    """
    from lamina.cli.printing.progress import run_steps
    from lamina.log.backup.copier import BackupError
    from lamina.log.files import Disk
    from lamina.offline.backup_target import BackupRefused
    from lamina.offline.cluster_restore import restore_cluster
    from lamina.settings.zookeeper_options import zookeeper_options
    from lamina.store.opening import connect

    try:
        settings = settings_from(file, data_dir, node_id, sets, **{"zookeeper.connect": zookeeper})
        options = zookeeper_options(settings)
        if options is None:
            raise SettingError("the cluster needs a ZooKeeper: name it with --zookeeper or zookeeper.connect")
        restored = run_steps(
            "restoring", lambda planned: restore_cluster(settings, backup, lambda: connect(options), Disk(), planned)
        )
    except (SettingError, PropertiesError, BackupRefused) as error:
        warn(str(error))
        return BAD_INPUT
    except BackupError as error:
        warn(f"{error}; this broker was not restored")
        return SOMETHING_WRONG
    given = restored.data_directory if file is None or data_dir is not None else None
    _print(restored, serve_line(file, given, node_id, zookeeper, sets), as_json)
    return FINE


def _print(restored: "ClusterRestored", start: str, as_json: bool) -> None:
    size_bytes = sum(one.size_bytes for one in restored.partitions)
    if as_json:
        print_json(
            {
                "type": "restored",
                "data_dir": restored.data_directory,
                "log_dirs": list(restored.log_directories),
                "cluster_id": restored.cluster_id,
                "node_id": restored.node_id,
                "partitions": len(restored.partitions),
                "size_bytes": size_bytes,
                "waiting": list(restored.waiting),
                "started_ms": restored.manifest.started_ms,
                "next": start,
            }
        )
        return
    partitions = counted(len(restored.partitions), "partition")
    click.echo(
        f"Restored {partitions} ({bytes_text(size_bytes)}) to {restored.data_directory}, "
        f"for broker {restored.node_id} of cluster {restored.cluster_id}"
    )
    click.echo(f"To start it: {start}")
    if restored.waiting:
        left = ", ".join(map(str, restored.waiting))
        click.echo(f"Still to be restored, each on its own machine: {left}")
