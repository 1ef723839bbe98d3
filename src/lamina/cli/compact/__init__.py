"""``lamina compact``: have a running broker compact a topic now, or compact a directory that no broker uses."""

import click

from lamina.cli.options.admin import FindListener, lazy_admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.names import topics_argument


@click.command(
    "compact",
    epilog="""\b
Exit status: 0 fine, 1 something could not be compacted, 2 bad input, 3 no broker answers,
130 interrupted (what the broker was asked for goes on).

\b
Examples:
  lamina compact orders
  lamina compact orders --partition 3 --roll --wait
  lamina compact --dir /var/lib/lamina --dry-run
  lamina compact --dir /var/lib/kafka/data orders --set cleanup.policy=compact""",
)
@topics_argument(required=False)
@click.option("--partition", type=click.IntRange(0), metavar="N", help="This partition alone.")
@click.option("--roll", is_flag=True, help="Close the active segment first, so that all of the log can be cleaned.")
@click.option("--wait", is_flag=True, help="Wait until it is done, and show what came of it.")
@click.option("--dir", "directory", metavar="DIR", help="A data or log directory that no broker uses.")
@click.option("--dry-run", is_flag=True, help="With --dir: show what would come of it, and change nothing.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --dir: a setting of the topics, where Kafka wrote it.",
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

    It is done whatever the dirty ratio. A running broker is asked through its admin listener, which wants the token;
    without --wait it goes on by itself (`lamina cleaner status`). With --dir the files of a stopped broker are
    compacted here.
    """
    if directory is not None:
        from lamina.cli.compact.offline import compact_offline

        if wait:
            raise click.UsageError("--wait is for a running broker: with --dir the work is done here.")
        return compact_offline(directory, topics, partition, sets, roll=roll, dry_run=dry_run, as_json=as_json)
    from lamina.cli.compact.online import compact_online

    if dry_run or sets:
        raise click.UsageError("--dry-run and --set are for a directory that no broker uses: give --dir.")
    if not topics:
        raise click.UsageError("Which topic? Name it, or give --dir for a directory that no broker uses.")
    return compact_online(find_listener(), topics, partition, roll=roll, wait=wait, as_json=as_json)
