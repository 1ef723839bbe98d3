"""``lamina restore``: shows what ``lamina.offline`` restores."""

from typing import TYPE_CHECKING

import click

from lamina.cli.options.settings import serve_line, settings_from
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import bytes_text, counted
from lamina.settings.broker import NODE_ID
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError

if TYPE_CHECKING:
    from lamina.offline.restore import Restored


@click.command(
    "restore",
    epilog="""\b
Exit status: 0 fine, 1 nothing was restored, 2 bad input.

\b
Examples:
  lamina restore /backups/monday --dir /var/lib/lamina
  lamina restore /backups/monday --config server.properties""",
)
@click.option("--dir", "data_dir", metavar="DATA", help="The new data directory.  [default: ./lamina-data]")
@click.option("--config", "file", metavar="FILE", help="The broker's server.properties, if it sets log.dirs.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Any setting by Kafka's name, as for serve.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("backup", metavar="BACKUP")
def command(data_dir: str | None, file: str | None, sets: tuple[str, ...], as_json: bool, backup: str) -> int:
    """Restore a backup into an empty directory.

    Everything is copied; the backup stays as it is. Files that were copied into the backup are checked against their
    checksums. No broker starts on a directory while it is being restored.
    """
    from lamina.cli.printing.progress import run_steps
    from lamina.log.backup.copier import BackupError
    from lamina.log.files import Disk
    from lamina.offline.backup_target import BackupRefused
    from lamina.offline.restore import restore

    try:
        settings = settings_from(file, data_dir, None, sets)
        restored = run_steps("restoring", lambda planned: restore(settings, backup, Disk(), planned))
    except (SettingError, PropertiesError, BackupRefused) as error:
        warn(str(error))
        return BAD_INPUT
    except BackupError as error:
        warn(f"{error}; nothing was restored")
        return SOMETHING_WRONG
    given = restored.data_directory if file is None or data_dir is not None else None
    node_id = restored.manifest.node_id if settings[NODE_ID] != restored.manifest.node_id else None
    _print(restored, serve_line(file, given, node_id, None, sets), as_json)
    return FINE


def _print(restored: "Restored", start: str, as_json: bool) -> None:
    manifest = restored.manifest
    size_bytes = sum(one.size_bytes for one in manifest.partitions)
    if as_json:
        print_json(
            {
                "type": "restored",
                "data_dir": restored.data_directory,
                "log_dirs": list(restored.log_directories),
                "cluster_id": manifest.cluster_id,
                "node_id": manifest.node_id,
                "clean_shutdown": manifest.is_clean,
                "started_ms": manifest.started_ms,
                "partitions": len(manifest.partitions),
                "size_bytes": size_bytes,
                "next": start,
            }
        )
        return
    partitions = counted(len(manifest.partitions), "partition")
    click.echo(f"Restored {partitions} ({bytes_text(size_bytes)}) to {restored.data_directory}")
    click.echo(f"To start a broker on it: {start}")
