"""``lamina bench``: what this machine measures of a cluster."""

from contextlib import AbstractContextManager

import click

from lamina.cli.bench.measurement import Amount, Measured, measured_topic, read, send
from lamina.cli.interruption import Interruption
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.numbers import decimal, whole
from lamina.cli.outcome import FINE, INTERRUPTED
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import bytes_text, per_second
from lamina.cli.produce import ACKS, CODECS
from lamina.cli.usage import CommandGroup
from lamina.client import topic as topics
from lamina.client.cluster import Cluster
from lamina.client.latencies import Latencies
from lamina.client.sender import producer_config

_PERCENTILES = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99_9", 99.9))
_DEFAULT_SECONDS = 10.0
_DEFAULT_CONSUMED = 1_000_000
_TIMEOUT_SECONDS = 60.0
_TOPIC = click.option("--topic", metavar="TOPIC", help="Use this topic and keep it.  [default: a temporary one]")
_PARTITIONS = click.option(
    "--partitions", type=whole(1), metavar="N", help="Partitions of the temporary topic.  [default: 1]"
)
_RECORDS = click.option("--records", type=whole(1), metavar="N", help="How many records.")
_SECONDS = click.option("--seconds", type=decimal(), metavar="S", help="How long at most.")
_SIZE = click.option(
    "--size",
    "size_bytes",
    type=whole(largest=100_000_000),
    default=100,
    metavar="BYTES",
    help="The size of a value.  [default: 100]",
)
_COMPRESSION = click.option(
    "--compression", type=click.Choice(CODECS), default="none", help="How batches are compressed.  [default: none]"
)


@click.group(
    "bench",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina bench produce --seconds 5
  lamina bench produce --rate 10000 --size 1000 --acks all --json
  lamina bench consume --records 2000000""",
)
def command() -> None:
    """Measure how fast records go to a cluster and come back.

    This measures one client on this machine, through librdkafka and Python, and everything between it and the cluster;
    it is not the limit of the cluster.
    """


@command.command(
    "produce",
    epilog="""\b
Examples:
  lamina bench produce
  lamina bench produce --rate 10000 --seconds 30 --size 1000
  lamina bench produce --topic orders-test --records 1000000 --compression lz4""",
)
@_TOPIC
@_PARTITIONS
@_RECORDS
@_SECONDS
@_SIZE
@_COMPRESSION
@click.option("--acks", type=click.Choice(ACKS), default="all", help="Which replicas must acknowledge.  [default: all]")
@click.option(
    "--rate",
    type=decimal(),
    metavar="N",
    help="Records per second.  [default: as fast as possible]",
)
@as_json_option
@cluster_options
def bench_produce(
    cluster: Cluster,
    topic: str | None,
    partitions: int | None,
    records: int | None,
    seconds: float | None,
    size_bytes: int,
    compression: str,
    acks: str,
    rate: float | None,
    as_json: bool,
) -> int:
    """Send records and measure rate and latency.

    Without --records it takes 10 seconds. A latency is the time from giving a record to librdkafka to its
    acknowledgement. At full speed records queue in the client, and the latency is that of the queue: give --rate
    for the latency of the cluster.
    """
    amount = Amount(records, _DEFAULT_SECONDS if records is None and seconds is None else seconds)
    latencies = Latencies()
    with Interruption() as interruption, _topic(cluster, topic, partitions, size_bytes) as name:
        config = _config(cluster, name, acks, compression)
        measured = send(cluster, name, config, amount, size_bytes, rate, interruption, latencies)
    found = {shown: latencies.percentile_ms(percent) for shown, percent in _PERCENTILES}
    row: Row = {
        **_row("produce", name, topic, measured),
        "size_bytes": size_bytes,
        "compression": compression,
        "acks": acks,
        "rate": rate,
        "latency_ms": {**found, "max": latencies.largest_ms},
    }
    if as_json:
        print_json(row)
    else:
        cells = [(f"latency {shown.replace('_', '.')}", _milliseconds(value)) for shown, value in found.items()]
        _print(measured, [*cells, ("latency max", _milliseconds(latencies.largest_ms))])
    return INTERRUPTED if interruption() else FINE


@command.command(
    "consume",
    epilog="""\b
Examples:
  lamina bench consume
  lamina bench consume --topic orders --seconds 10 --json""",
)
@_TOPIC
@_PARTITIONS
@_RECORDS
@_SECONDS
@_SIZE
@_COMPRESSION
@as_json_option
@cluster_options
def bench_consume(
    cluster: Cluster,
    topic: str | None,
    partitions: int | None,
    records: int | None,
    seconds: float | None,
    size_bytes: int,
    compression: str,
    as_json: bool,
) -> int:
    """Read records and measure the rate.

    A given topic is read from its beginning to its end. A temporary one is filled first, with --records or 1,000,000
    records; filling it is not measured.
    """
    with Interruption() as interruption, _topic(cluster, topic, partitions, size_bytes) as name:
        if topic is None:
            filling = Amount(records or _DEFAULT_CONSUMED, None)
            config = _config(cluster, name, "all", compression)
            send(cluster, name, config, filling, size_bytes, None, interruption, None)
        measured = read(cluster, name, Amount(records, seconds), interruption)
    first_ms = None if measured.first_seconds is None else round(measured.first_seconds * 1000, 3)
    if as_json:
        print_json({**_row("consume", name, topic, measured), "first_record_ms": first_ms})
    else:
        _print(measured, [("first record after", _milliseconds(first_ms))])
    return INTERRUPTED if interruption() else FINE


def _topic(cluster: Cluster, given: str | None, partitions: int | None, size_bytes: int) -> AbstractContextManager[str]:
    if given is not None and partitions is not None:
        raise click.UsageError("--partitions is for the temporary topic: leave it out, or --topic.")
    return measured_topic(cluster, given, partitions or 1, size_bytes)


def _config(cluster: Cluster, topic: str, acks: str, compression: str) -> dict[str, object]:
    return producer_config(
        cluster,
        max_message_bytes=topics.rules_of(cluster.admin(), topic).max_message_bytes,
        timeout_seconds=_TIMEOUT_SECONDS,
        acks=acks,
        compression=compression,
        idempotent=None,
    )


def _row(what: str, name: str, given: str | None, measured: Measured) -> Row:
    return {
        "type": f"bench_{what}",
        "topic": name,
        "temporary": given is None,
        "records": measured.records,
        "bytes": measured.size_bytes,
        "seconds": round(measured.seconds, 3),
        "records_per_second": round(per_second(measured.records, measured.seconds), 1),
        "bytes_per_second": round(per_second(measured.size_bytes, measured.seconds), 1),
    }


def _print(measured: Measured, more: list[tuple[str, str]]) -> None:
    rows = [
        ("records", f"{measured.records:,}"),
        ("size", bytes_text(measured.size_bytes)),
        ("seconds", f"{measured.seconds:.2f}"),
        ("records/s", f"{per_second(measured.records, measured.seconds):,.0f}"),
        ("MB/s", f"{per_second(measured.size_bytes, measured.seconds) / 1e6:,.1f}"),
        *more,
    ]
    print_table(("measure", "value"), rows)
    click.echo("This measures one client on this machine, through librdkafka and Python, not the limit of the cluster.")


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f} ms"
