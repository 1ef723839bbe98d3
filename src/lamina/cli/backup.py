"""``lamina backup``: shows what ``lamina.offline`` backs up."""

from typing import TYPE_CHECKING

import click

from lamina.cli.lock_holder import is_held
from lamina.cli.options.settings import settings_from
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.backups import partition_facts, summary_facts
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import counted
from lamina.clocks import pause
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError

if TYPE_CHECKING:
    from lamina.offline.backup import Backup

_PAUSE_SECONDS = 0.05


@click.command(
    "backup",
    epilog="""\b
Exit status: 0 fine, 1 no backup was made, or it has the damage that the broker's own data has, 2 bad input.

\b
Examples:
  lamina backup --dir /var/lib/lamina /backups/monday
  lamina backup --config server.properties --copy /mnt/other-disk/monday
  lamina verify --dir /backups/monday/logs""",
)
@click.option("--dir", "data_dir", metavar="DATA", help="The broker's data directory.  [default: ./lamina-data]")
@click.option("--config", "file", metavar="FILE", help="The broker's server.properties, if it sets log.dirs.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Any setting by Kafka's name, as for serve.")
@click.option("--copy", "must_copy", is_flag=True, help="Copy everything; make no hard links.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object per line: every partition, then a summary."
)
@click.argument("target", metavar="TARGET")
def command(
    data_dir: str | None, file: str | None, sets: tuple[str, ...], must_copy: bool, as_json: bool, target: str
) -> int:
    """Back up a broker, running or stopped.

    TARGET must not exist. On the same file system, segments that will never change are hard links, which take no
    space; everything else is copied. The broker is neither asked nor slowed down. Every record that was acknowledged
    before the backup began is in it.
    """
    from lamina.cli.printing.progress import run_steps
    from lamina.log.backup.copier import BackupError
    from lamina.log.files import Disk
    from lamina.offline.backup import Circumstances, take_backup
    from lamina.offline.backup_target import BackupRefused

    try:
        settings = settings_from(file, data_dir, None, sets)
        backup = run_steps(
            "backing up",
            lambda planned: take_backup(
                settings,
                target,
                Circumstances(Disk(), is_held, lambda: pause(_PAUSE_SECONDS), planned),
                may_link=not must_copy,
            ),
        )
    except (SettingError, PropertiesError, BackupRefused) as error:
        warn(str(error))
        return BAD_INPUT
    except BackupError as error:
        warn(f"{error}; no backup was made")
        return SOMETHING_WRONG
    (_print_json if as_json else _print_table)(backup)
    damaged = [one.damage for one in backup.manifest.partitions if one.damage is not None]
    for damage in damaged:
        warn(f"{damage}: it was copied as it is; `lamina verify` says more")
    for name in backup.missing:
        warn(f"{name} is not in the backup: its directory is missing; is a disk not mounted?")
    return SOMETHING_WRONG if damaged or backup.missing else FINE


def _print_table(backup: "Backup") -> None:
    """Partitions without a record are only counted: a broker keeps many of them for itself."""
    manifest = backup.manifest
    filled = [one for one in manifest.partitions if one.end_offset > one.log_start_offset]
    print_table(
        ("topic", "partition", "log start", "log end", "segments", "bytes", "linked bytes"),
        (
            (
                one.topic,
                *map(str, (one.partition, one.log_start_offset, one.end_offset, len(one.segments))),
                *map(str, (one.size_bytes, one.linked_bytes)),
            )
            for one in filled
        ),
    )
    if len(filled) < len(manifest.partitions):
        click.echo(f"Not shown: {counted(len(manifest.partitions) - len(filled), 'empty partition')}.")
    for name in backup.deleted:
        click.echo(f"Left out: {name}, which was deleted meanwhile.")
    for path in backup.unknown:
        click.echo(f"Left out: {path}, which was not in the broker's metadata.")
    click.echo(f"Backup complete: {backup.target}\nTo restore it: lamina restore {backup.target} --dir DATA")


def _print_json(backup: "Backup") -> None:
    manifest = backup.manifest
    for one in manifest.partitions:
        print_json({**partition_facts(one), "linked_bytes": one.linked_bytes, "damage": one.damage})
    print_json(
        {
            **summary_facts(backup.target, manifest),
            "node_id": manifest.node_id,
            "clean_shutdown": manifest.is_clean,
            "linked_bytes": sum(one.linked_bytes for one in manifest.partitions),
            "deleted_topics": list(backup.deleted),
            "unknown": list(backup.unknown),
            "missing": list(backup.missing),
        }
    )
