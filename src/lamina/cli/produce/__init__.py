"""``lamina produce``: lines or JSON objects become records of a topic."""

import sys
from collections.abc import Callable

import click

from lamina.cli.escapes import unescape
from lamina.cli.interruption import Interruption
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.moments import FORMS, parse_moment
from lamina.cli.options.names import topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, decimal, whole
from lamina.cli.outcome import BAD_INPUT, FINE, INTERRUPTED, warn
from lamina.cli.printing.tables import print_json
from lamina.cli.produce.production import STANDARD_INPUT, BadInput, Production
from lamina.cli.produce.record_parsing import Given, json_parser, line_parser, with_key
from lamina.cli.produce.summary import summary_row, summary_text
from lamina.cli.record_json import BadRecord, GivenRecord, header_key
from lamina.client import topic as topics
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, no_topic
from lamina.client.sender import ANY_PARTITION, DEFAULT_MAX_MESSAGE_BYTES, NOW, Headers, Sender, producer_config
from lamina.clocks import SYSTEM_CLOCKS

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("all", "1", "0")
_JSON_GROWTH = 8
"""How much longer than its bytes a record is in JSON at most: six characters for one byte, and the fields' names."""


def _escaped(_ctx: click.Context, _option: click.Parameter, text: str | None) -> bytes | None:
    try:
        separator = None if text is None else unescape(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if separator == b"" or (separator is not None and b"\n" in separator):
        raise click.BadParameter("it must be one character or more, and hold no newline")
    return separator


def _moment(_ctx: click.Context, _option: click.Parameter, text: str | None) -> int:
    if text is None:
        return NOW
    try:
        moment_ms = parse_moment(text, SYSTEM_CLOCKS.now_ms())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if moment_ms == NOW:
        raise click.BadParameter("librdkafka takes 0 for now; give 1 or more")
    return moment_ms


def _headers(_ctx: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Headers | None:
    headers: Headers = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE")
        try:
            headers.append((header_key(name.encode()), value.encode()))
        except BadRecord as error:
            raise click.BadParameter(str(error)) from error
    return headers or None


@click.command(
    "produce",
    epilog="""\b
Exit status: 0 everything was delivered, 1 a record was not, 2 bad input, 3 no
broker could be reached, 130 interrupted (what was read before was sent).

\b
Examples:
  echo hello | lamina produce greetings --create
  lamina produce orders --key-separator : --file orders.txt
  lamina produce orders --tombstone order-17 --tombstone order-18
  lamina consume orders --json | lamina produce copy --format json
  seq 1000000 | lamina produce numbers --rate 5000 --compression zstd""",
)
@topic_argument()
@click.option(
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    help="Read this file instead of standard input (-); may be repeated.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["lines", "json"]),
    default="lines",
    help="One value per line, or one JSON object as consume prints it.  [default: lines]",
)
@click.option(
    "--key-separator", metavar="SEP", callback=_escaped, help="A line is KEY SEP VALUE; \\t, \\0, \\xHH are understood."
)
@click.option("--key-optional", is_flag=True, help="A line without the separator is a value without a key.")
@click.option(
    "--empty-is-tombstone", is_flag=True, help="A line with a key and nothing behind the separator is a tombstone."
)
@click.option(
    "--tombstone",
    "tombstones",
    metavar="KEY",
    multiple=True,
    help="Send a tombstone (null value) for this key and read nothing; may be repeated.",
)
@click.option(
    "--header",
    "headers",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_headers,
    help="A header of every record; may be repeated.",
)
@click.option("--partition", type=whole(largest=PARTITION_MAX), metavar="N", help="Send everything to this partition.")
@click.option(
    "--timestamp", "timestamp_ms", metavar="TIME", callback=_moment, help=f"The records' time: {FORMS}.  [default: now]"
)
@click.option("--create", is_flag=True, help="Create the topic if it does not exist, with the cluster's defaults.")
@click.option(
    "--acks",
    type=click.Choice(ACKS),
    help="Which replicas must have a record before it is acknowledged.  [default: all]",
)
@click.option("--compression", type=click.Choice(CODECS), help="How batches are compressed.  [default: none]")
@click.option(
    "--idempotent/--no-idempotent",
    default=None,
    help="Keep retries from writing a record twice.  [default: on with --acks all]",
)
@click.option(
    "--rate",
    type=decimal(),
    metavar="N",
    help="Records per second.  [default: as fast as possible]",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=decimal(1, 2_000_000),
    default=60,
    metavar="SECONDS",
    help="How long the delivery of a record may take, with all retries.  [default: 60]",
)
@as_json_option
@cluster_options
def command(
    cluster: Cluster,
    topic: str,
    files: tuple[str, ...],
    format_: str,
    key_separator: bytes | None,
    key_optional: bool,
    empty_is_tombstone: bool,
    tombstones: tuple[str, ...],
    headers: Headers | None,
    partition: int | None,
    timestamp_ms: int,
    create: bool,
    acks: str | None,
    compression: str | None,
    idempotent: bool | None,
    rate: float | None,
    timeout_seconds: float,
    as_json: bool,
) -> int:
    """Send lines as records.

    A line's end is LF and is not part of the record; a CR before it is. An empty line is a record with an empty value.
    The last line on standard error says what was delivered, and where.
    """
    if key_separator is None and (key_optional or empty_is_tombstone):
        raise click.UsageError("--key-optional and --empty-is-tombstone need --key-separator.")
    if key_separator is not None and format_ == "json":
        raise click.UsageError("--key-separator is for lines; a JSON object names its key.")
    if tombstones and (files or key_separator is not None or format_ == "json"):
        raise click.UsageError("--tombstone reads no input: leave out --file, --format and --key-separator.")
    if idempotent and acks in ("0", "1"):
        raise click.UsageError("--idempotent needs --acks all.")
    given = Given(headers, ANY_PARTITION if partition is None else partition, timestamp_ms)
    names = files or (STANDARD_INPUT,)
    rules = _rules(cluster, topic, partition, create, as_json)
    config = producer_config(
        cluster,
        max_message_bytes=rules.max_message_bytes,
        timeout_seconds=timeout_seconds,
        acks=acks,
        compression=compression,
        idempotent=idempotent,
    )
    is_typed = not tombstones and STANDARD_INPUT in names and sys.stdin is not None and sys.stdin.isatty()
    min_in_sync = None if acks in ("0", "1") else rules.min_insync_replicas
    sender = Sender(cluster, topic, config, min_in_sync=min_in_sync)
    status = FINE
    if is_typed:
        click.echo("Type one record a line; Ctrl-D ends.", err=True)
    with Interruption() as interruption:
        # A line that is redrawn would overwrite what a person types.
        production = Production(sender, rate, interruption, shows_progress=not is_typed)
        try:
            if tombstones:
                records = (GivenRecord(None, key.encode(), *given) for key in tombstones)
                production.send_records(records, "the tombstones")
            else:
                parse = _parser(
                    format_, topic, rules.is_compacted, key_separator, key_optional, empty_is_tombstone, given
                )
                limit = rules.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES
                too_long = (
                    f"is longer than the {limit} bytes that topic {topic} takes; "
                    "raise max.message.bytes of the topic, or send less"
                )
                line_bytes = _JSON_GROWTH * limit + 65_536 if format_ == "json" else limit
                production.send_files(names, parse, line_bytes, too_long)
        except BadInput as error:
            status = BAD_INPUT
            warn(str(error))
        try:
            production.finish()
        finally:
            seconds = production.seconds
            if as_json:
                print_json(summary_row(topic, sender.deliveries, seconds))
            else:
                click.echo(summary_text(topic, sender.deliveries, seconds), err=True)
    return INTERRUPTED if interruption() else status


def _parser(
    format_: str,
    topic: str,
    is_compacted: bool,
    key_separator: bytes | None,
    key_optional: bool,
    empty_is_tombstone: bool,
    given: Given,
) -> Callable[[bytes], GivenRecord | None]:
    """What makes a record of a line, and asks for its key where the topic needs one."""
    parse: Callable[[bytes], GivenRecord | None]
    if format_ == "json":
        parse, how = json_parser(given), 'give the object a "key"'
    else:
        # Of a compacted topic the key is asked for below, whatever --key-optional says.
        parse = line_parser(key_separator, key_optional or is_compacted, empty_is_tombstone, given)
        how = _how_to_give_keys(key_separator)
    return with_key(parse, f"topic {topic} is compacted, so every record needs one: {how}") if is_compacted else parse


def _how_to_give_keys(separator: bytes | None) -> str:
    if separator is None:
        return "give --key-separator : and lines of the form KEY:VALUE"
    return f"write the line as KEY{separator.decode(errors='backslashreplace')}VALUE"


def _rules(cluster: Cluster, topic: str, partition: int | None, create: bool, as_json: bool) -> topics.Rules:
    """What the topic demands of records. Raises ClientError where the topic or the partition is not there."""
    admin = cluster.admin()
    found = topics.find(admin, topic)
    if found is None:
        if not create:
            raise no_topic(topic, f"give --create, or create it with `lamina topics create {topic}`")
        topics.create(admin, topic)
        if not as_json:
            click.echo(f"Created topic {topic}.", err=True)
    elif partition is not None and partition not in found.partitions:
        raise ClientError(f"topic {topic} has no partition {partition}; it has {len(found.partitions)}, counted from 0")
    return topics.rules_of(admin, topic)
