"""``lamina compact``: have a running broker compact a topic now, or compact a directory that no broker uses."""

import click

from lamina.cli.options.admin import FindListener, lazy_admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.names import topics_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole


@click.command(
    "compact",
    epilog="""\b
Exit status: 0 fine, 1 something could not be compacted, 2 bad input, 3 no broker answers,
130 interrupted (the broker goes on compacting).

\b
Examples:
  lamina compact orders
  lamina compact orders --partition 3 --roll --wait
  lamina compact --dir /var/lib/lamina --dry-run
  lamina compact --dir /var/lib/kafka/data orders --set cleanup.policy=compact""",
)
@topics_argument(required=False)
@click.option("--partition", type=whole(largest=PARTITION_MAX), metavar="N", help="Only this partition.")
@click.option("--roll", is_flag=True, help="Roll the active segment first, so that the whole log can be cleaned.")
@click.option("--wait", is_flag=True, help="Wait until it is done, and show the result.")
@click.option("--dir", "directory", metavar="DIR", help="The data or log directory of a stopped broker.")
@click.option("--dry-run", is_flag=True, help="With --dir: only show what the result would be.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --dir: a setting of the topics, for a directory that Kafka wrote.",
)
@as_json_option
@lazy_admin_options
def command(
    find_listener: FindListener,
    topics: tuple[str, ...],
    partition: int | None,
    roll: bool,
    wait: bool,
    directory: str | None,
    dry_run: bool,
    sets: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compact topics now, or the directory of a stopped broker.

    This does not wait for the dirty ratio. A running broker is asked through its admin listener, which needs the admin
    token. Without --wait the command ends at once, and `lamina cleaner status` shows the progress. With --dir this
    process compacts the files of a stopped broker.
    """
    if directory is not None:
        from lamina.cli.compact.offline import compact_offline

        if wait:
            raise click.UsageError("--wait is for a running broker: leave it out with --dir.")
        return compact_offline(directory, topics, partition, sets, roll=roll, dry_run=dry_run, as_json=as_json)
    from lamina.cli.compact.online import compact_online

    if dry_run or sets:
        raise click.UsageError("--dry-run and --set are for the directory of a stopped broker: give --dir.")
    if not topics:
        raise click.UsageError("Name a topic, or give --dir for the directory of a stopped broker.")
    return compact_online(find_listener(), topics, partition, roll=roll, wait=wait, as_json=as_json)
