"""``lamina consume``: the records of a topic, as a member of a group or without a trace."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from lamina.cli.consume.bounds import EARLIEST, Bound, parse_bound
from lamina.cli.consume.ranges import ranges_of
from lamina.cli.consume.record_format import Writer, writer_of
from lamina.cli.consume.summary import summary_row, summary_text, why_nothing
from lamina.cli.interruption import Interruption
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import checked_names, complete_group, topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, decimal, whole
from lamina.cli.options.schema_registry import schema_registry_options
from lamina.cli.outcome import FINE, INTERRUPTED, warn
from lamina.cli.printing.progress import ProgressLine
from lamina.cli.printing.tables import json_line
from lamina.cli.printing.text import counted
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.group_reader import GroupReader
from lamina.client.partition_range import PartitionRange
from lamina.client.reader import Reader
from lamina.clocks import SYSTEM_CLOCKS

if TYPE_CHECKING:
    from lamina.cli.consume.decoding import Decoding
    from lamina.schema_registry.location import Location


def _bound(_ctx: click.Context, _option: click.Parameter, text: str | None) -> Bound | None:
    try:
        return None if text is None else parse_bound(text, SYSTEM_CLOCKS.now_ms())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _writer(_ctx: click.Context, _option: click.Parameter, text: str) -> tuple[str, Writer]:
    try:
        return text, writer_of(text, sys.stdout.encoding if sys.stdout.isatty() else None)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    "consume",
    epilog="""\b
Exit status: 0 fine, 1 the topic does not exist or cannot be read, 2 a wrong
command line, 3 no broker could be reached, 130 interrupted, 141 the reader of
the output went away.

\b
Examples:
  lamina consume orders
  lamina consume orders -f --from latest --format '%p %o %k\\t%v'
  lamina consume orders --from -10 --json
  lamina consume orders --from -1h --to 2026-01-31T12:00 --partition 0
  lamina consume orders --count 5 | head -c 100
  lamina consume orders -f --group billing
  lamina consume orders --schema-registry http://localhost:8081""",
)
@topic_argument()
@click.option("--follow", "-f", is_flag=True, help="At the end, wait for new records.")
@click.option(
    "--from",
    "from_",
    metavar="WHERE",
    callback=_bound,
    help="The first record: an offset, earliest, latest, -N (the last N of each partition), or a time "
    "(2026-01-31T12:00, -1h, @MILLISECONDS).  [default: earliest]",
)
@click.option(
    "--to",
    metavar="WHERE",
    callback=_bound,
    help="Where to stop, this one not included.  [default: the current end]",
)
@click.option(
    "--partition",
    "partitions",
    type=whole(largest=PARTITION_MAX),
    metavar="N",
    multiple=True,
    help="Only this partition; may be repeated.",
)
@click.option("--from-beginning", is_flag=True, hidden=True)
@click.option("--count", "--max-messages", "count", type=whole(), metavar="N", help="Stop after so many records.")
@click.option(
    "--format",
    "format_",
    default="value",
    metavar="FORMAT",
    callback=_writer,
    help="value, json, raw (nothing between values), or a template: %k key, %v value, %p partition, %o offset, "
    "%t milliseconds, %T time, %h headers.  [default: value]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The same as --format json; the last line on standard error is then JSON too.",
)
@click.option(
    "--isolation",
    "--isolation-level",
    "isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_uncommitted",
    help="Whether records of open and aborted transactions are shown.  [default: read_uncommitted]",
)
@click.option(
    "--group",
    metavar="GROUP",
    callback=checked_names,
    shell_complete=complete_group,
    help="Join this group: start at its committed offsets, share partitions with its members, commit what was printed.",
)
@click.option(
    "--group-protocol",
    "protocol",
    type=click.Choice(["classic", "consumer"]),
    help="The protocol of the group.  [default: group.protocol of the properties, else classic]",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=decimal(0.1, 86_400),
    default=30,
    metavar="SECONDS",
    help="Give up after so long without an answer from the cluster.  [default: 30]",
)
@schema_registry_options
@cluster_options
def command(
    cluster: Cluster,
    registry: "Location | None",
    topic: str,
    follow: bool,
    from_: Bound | None,
    from_beginning: bool,
    to: Bound | None,
    partitions: tuple[int, ...],
    count: int | None,
    format_: tuple[str, Writer],
    as_json: bool,
    isolation: str,
    group: str | None,
    protocol: str | None,
    timeout_seconds: float,
) -> int:
    """Print the records of a topic.

    Reads from the earliest record to the current end, and exits; -f waits for more. Records of one partition come in
    order; partitions are mixed. Without --group it joins no group and commits nothing. It never creates a topic. The
    last line on standard error says what was read, and which offsets had no record.
    """
    name, write = _format(format_, as_json)
    if from_beginning:
        if from_ not in (None, EARLIEST):
            raise click.UsageError("--from-beginning is --from earliest: give one of them.")
        from_ = EARLIEST
    decoding = None if registry is None else _decoding(registry, name)
    read_committed = isolation == "read_committed"
    if group is None and protocol is not None:
        raise click.UsageError("--group-protocol needs --group.")
    if group is not None and partitions:
        raise click.UsageError("Give --group or --partition, not both: a group assigns partitions itself.")
    ranges = ranges_of(cluster, topic, partitions, from_ or EARLIEST, to, follow, read_committed)
    reader = _reader(cluster, topic, ranges, group, protocol, read_committed, follow, timeout_seconds)
    clocks = SYSTEM_CLOCKS
    began = clocks.monotonic_seconds()

    def tell() -> None:
        if decoding is not None:
            decoding.tell()
        seconds = clocks.monotonic_seconds() - began
        told = (
            json_line(summary_row(topic, reader.ranges, seconds))
            if name == "json"
            else summary_text(topic, reader.ranges, seconds)
        )
        click.echo(told, err=True)

    with Interruption() as interruption:
        try:
            _print(reader, write if decoding is None else decoding.writer(name, write), interruption, count)
        except ClientError:
            tell()
            raise
    tell()
    if interruption():
        return INTERRUPTED
    if group is not None and name != "json" and count != 0 and not any(each.records for each in reader.ranges):
        warn(why_nothing(topic, group, reader.ranges))
    return FINE


def _format(given: tuple[str, Writer], as_json: bool) -> tuple[str, Writer]:
    if not as_json:
        return given
    if given[0] not in ("value", "json"):
        raise click.UsageError("--json is --format json: give one of them.")
    return "json", writer_of("json")


def _reader(
    cluster: Cluster,
    topic: str,
    ranges: list[PartitionRange],
    group: str | None,
    protocol: str | None,
    read_committed: bool,
    follow: bool,
    silence_seconds: float,
) -> Reader:
    if group is None:
        return Reader(
            cluster, topic, ranges, read_committed=read_committed, follow=follow, silence_seconds=silence_seconds
        )
    return GroupReader(
        cluster,
        topic,
        group,
        protocol=protocol or cluster.given("group.protocol") or "classic",
        starts={each.partition: each.start for each in ranges},
        ends=_ends(ranges),
        read_committed=read_committed,
        follow=follow,
        silence_seconds=silence_seconds,
    )


def _decoding(registry: "Location", format_: str) -> "Decoding":
    from lamina.cli.consume.decoding import Decoding

    if format_ == "raw":
        raise click.UsageError("--format raw prints bare bytes, and --schema-registry decodes them: give one of them.")
    return Decoding(registry)


def _ends(ranges: list[PartitionRange]) -> dict[int, int] | None:
    ends = {each.partition: each.end for each in ranges if each.end is not None}
    return ends if len(ends) == len(ranges) else None


def _print(reader: Reader, write: Writer, is_stopped: Callable[[], bool], count: int | None) -> None:
    progress = ProgressLine(is_wanted=not sys.stdout.isatty())
    out = sys.stdout.buffer
    try:
        for messages in reader.batches(is_stopped, count):
            if messages:
                out.write(write(messages))
                out.flush()
            progress.show(lambda: counted(sum(each.records for each in reader.ranges), "record"))
    finally:
        progress.clear()
