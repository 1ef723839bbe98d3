"""``lamina adopt``: shows what ``lamina.offline`` imports."""

import click

from lamina.cli.options.settings import settings_from, settings_options
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.progress import bar
from lamina.cli.printing.tables import print_table
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError


@click.command(
    "adopt",
    epilog="""\b
Exit status: 0 fine, 1 nothing was imported, 2 bad settings.

\b
Examples:
  lamina adopt lamina-data/logs/orders-0
  lamina adopt /var/lib/kafka/data --data-dir /var/lib/lamina""",
)
@settings_options
@click.argument("directory", metavar="DIR")
def command(file: str | None, data_dir: str | None, node_id: str | None, sets: tuple[str, ...], directory: str) -> int:
    """Import partition directories written by Kafka or another broker.

    DIR is the directory of a partition, or one that holds such directories. Those that are in the broker's log
    directories stay in place; others are copied there. The broker must be stopped. Retention and compaction stay off
    for an imported topic until its cleanup.policy is set.
    """
    from lamina.offline.adopt import AdoptionError, adopt
    from lamina.storage import StartError, open_storage

    try:
        settings = settings_from(file, data_dir, node_id, sets)
        storage = open_storage(settings)
    except (SettingError, PropertiesError) as error:
        warn(str(error))
        return BAD_INPUT
    except StartError as error:
        warn(str(error))
        return SOMETHING_WRONG
    try:
        with bar("copying") as copied:
            adopted = adopt(settings, storage, directory, copied)
    except AdoptionError as error:
        storage.close()
        warn(str(error))
        return SOMETHING_WRONG
    if not adopted:
        storage.close()
        warn("nothing to import: the broker knows all of these partitions")
        return FINE
    storage.release()
    rows = ((one.topic, str(one.index), "in place" if one.is_in_place else "copied", one.path) for one in adopted)
    print_table(("topic", "partition", "how", "from"), rows)
    click.echo("Retention and compaction are off for these topics until their cleanup.policy is set.")
    return FINE
