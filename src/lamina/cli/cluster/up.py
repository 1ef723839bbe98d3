"""``lamina cluster up``: starts a cluster, shows it while it runs, and stops it with Ctrl-C.

Owns the order of it and what is printed when. Must not know processes.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from lamina.cli.cluster.directory import local_cluster_option
from lamina.cli.cluster.rows import cluster_row
from lamina.cli.cluster.watching import LiveTable, StateLines
from lamina.cli.interruption import Interruption
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.numbers import whole
from lamina.cli.options.settings import settings_pairs_from
from lamina.cli.outcome import FINE, INTERRUPTED, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import counted
from lamina.clocks import SYSTEM_CLOCKS, Clocks, pause
from lamina.cluster.broker_figures import BrokerWatch
from lamina.cluster.layout import command_for
from lamina.cluster.local_cluster import LocalCluster
from lamina.cluster.plan import DEFAULT_BASE_PORT, DEFAULT_BROKERS
from lamina.settings.listeners import PORT_MAX

_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.05
_MOST_BROKERS = 100


@click.command(
    "up",
    epilog="""\b
Exit status: 0 stopped by Ctrl-C or `lamina cluster stop`, 1 could not start, 2 bad settings.

\b
Examples:
  lamina cluster up
  lamina cluster up --brokers 5 --data-dir /tmp/five --base-port 19092
  lamina cluster up --set num.partitions=6 --set unclean.leader.election.enable=true""",
)
@click.option(
    "--brokers",
    type=whole(1, _MOST_BROKERS),
    metavar="N",
    help=f"How many brokers.  [default: {DEFAULT_BROKERS}, or as many as there were]",
)
@click.option(
    "--base-port",
    type=whole(0, PORT_MAX),
    metavar="P",
    help=f"The port of broker 1; the others follow. 0 takes free ones.  [default: {DEFAULT_BASE_PORT}, or as before]",
)
@click.option(
    "--set",
    "sets",
    metavar="KEY=VALUE",
    multiple=True,
    help="Any setting of all brokers by Kafka's name; kept for the next start. May be repeated.",
)
@as_json_option
@local_cluster_option
def up(cluster: LocalCluster, brokers: int | None, base_port: int | None, sets: tuple[str, ...], as_json: bool) -> int:
    """Start a ZooKeeper and N brokers, show them, and stop them with Ctrl-C.

    Everything listens on this machine alone. The next start on the same directory goes on with what is there.
    """
    settings = settings_pairs_from(sets, "--set")
    for warning in cluster.check(brokers, base_port, settings):
        warn(warning)
    with cluster.supervised():
        try:
            with _signals_interrupt():
                cluster.up(brokers, base_port, settings, _quiet if as_json else _tell)
        except KeyboardInterrupt:
            warn("interrupted before the cluster had started")
            return INTERRUPTED
        if as_json:
            print_json(cluster_row(cluster))
        else:
            _print_start(cluster)
        sys.stdout.flush()
        with Interruption(*_hangup()) as interruption:
            _watch(cluster, interruption, as_json=as_json)
            return _stop(cluster, is_quiet=as_json)


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Whoever ends this command while it starts the cluster ends what it has started."""
    numbers = (signal.SIGTERM, *_hangup())
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _hangup() -> tuple[signal.Signals, ...]:
    """A terminal that closes ends the cluster, unless this was started by nohup."""
    return () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)


def _tell(step: str) -> None:
    click.echo(f"{step} …" if step.startswith("starting") else step, err=True)


def _quiet(_step: str) -> None:
    pass


def _print_start(cluster: LocalCluster) -> None:
    servers = cluster.bootstrap_servers()
    first = servers.partition(",")[0]
    brokers = counted(len(cluster.state().brokers), "broker")
    click.echo(f"{click.style('lamina cluster', bold=True)} of {brokers} is ready")
    click.echo(f"  clients     {servers}")
    click.echo(f"  zookeeper   {cluster.zookeeper_address()}")
    click.echo(f"  data        {cluster.directory}")
    click.echo(f"  look        {command_for(cluster.directory, 'status')}")
    click.echo("  stop        Ctrl-C")
    click.echo(f"  try         lamina topics create orders --bootstrap-server {first}")


def _watch(cluster: LocalCluster, interruption: Interruption, *, as_json: bool) -> None:
    """Until somebody ends it, here or elsewhere."""
    is_live = sys.stdout.isatty() and not as_json
    with (
        BrokerWatch() as watch,
        LiveTable(cluster) if is_live else StateLines(cluster, as_json=as_json) as shown,
    ):
        while not interruption() and cluster.is_running():
            shown.show(cluster.zookeeper(), watch.look(cluster.brokers()))
            _await_next_look(interruption)


def _await_next_look(interruption: Interruption, clocks: Clocks = SYSTEM_CLOCKS) -> None:
    deadline = clocks.monotonic_seconds() + _LOOK_SECONDS
    while not interruption() and clocks.monotonic_seconds() < deadline:
        pause(_POLL_SECONDS)


def _stop(cluster: LocalCluster, *, is_quiet: bool) -> int:
    if not is_quiet:
        click.echo("stopping the cluster; Ctrl-C again kills it …", err=True)
    try:
        cluster.stop(warn)
    except KeyboardInterrupt:
        cluster.kill()
        warn("killed: the next start checks the logs")
        return SOMETHING_WRONG
    return FINE
