"""``lamina doctor``: shows what was found, or writes it down for a bug report.

Owns the order of it. What is looked at lives in ``diagnosis``. Must not judge.
"""

import os
import sys
from collections.abc import Sequence

import click

from lamina.cli.doctor.bundle import CONTENTS, gather, write_bundle
from lamina.cli.doctor.examination import examine, examine_cluster
from lamina.cli.doctor.finding import Finding, State
from lamina.cli.doctor.probe import probe
from lamina.cli.options.cluster import cluster_from
from lamina.cli.options.settings import listeners_from, settings_from, settings_options
from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError
from lamina.settings.values import BrokerSettings
from lamina.storage import storage_paths


@click.command(
    "doctor",
    epilog="""\b
Exit status: 0 fine (warnings at most), 1 something stops a broker, 2 bad input.

\b
Examples:
  lamina doctor
  lamina doctor --config /etc/lamina/server.properties --data-dir /var/lib/lamina
  lamina doctor --json | jq 'select(.state == "problem")'
  lamina doctor --zookeeper zk1:2181,zk2:2181,zk3:2181
  lamina doctor --bootstrap-server broker1:9092
  lamina doctor --bundle report.tar.gz --log broker.log
  lamina doctor --ping 127.0.0.1:9092""",
)
@settings_options
@click.option("--listen", metavar="HOST:PORT", help="The address to check.  [default: 127.0.0.1:9092]")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT,…/CHROOT",
    help="The ZooKeeper ensemble to check; the same as --set zookeeper.connect=….  [default: none]",
)
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT,…",
    envvar="LAMINA_BOOTSTRAP_SERVERS",
    help="Check the brokers of a cluster that runs: ids, versions, clocks, what they warn of. Nothing of this machine "
    "is checked then, unless an option about a broker is given too.  [env: LAMINA_BOOTSTRAP_SERVERS]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line: every finding, then a summary.")
@click.option("--bundle", metavar="FILE", help="Also write a .tar.gz for a bug report; it holds no records.")
@click.option("--log", "log_file", metavar="FILE", help="The broker's log; its last lines go into the bundle.")
@click.option("--ping", metavar="HOST:PORT", help="Only check whether a broker answers there.")
def command(
    file: str | None,
    data_dir: str | None,
    node_id: str | None,
    sets: tuple[str, ...],
    listen: str | None,
    zookeeper: str | None,
    bootstrap_server: str | None,
    as_json: bool,
    bundle: str | None,
    log_file: str | None,
    ping: str | None,
) -> int:
    """Look for what would stop a broker, and say what to do.

    Checks Python, Java, the Spark engine, memory, file descriptors, settings, the data directory, the disk, the port,
    the ZooKeeper ensemble and the clock. Changes nothing.
    """
    if ping is not None:
        return _ping(ping)
    if bundle is not None and os.path.lexists(bundle):
        warn(f"{bundle} already exists: choose another name")
        return BAD_INPUT
    if log_file is not None and bundle is None:
        raise click.UsageError("--log needs --bundle FILE.")
    cluster = None if bootstrap_server is None else cluster_from(bootstrap_server, None, warn)
    is_about_a_broker = bool(sets) or any(one is not None for one in (file, data_dir, node_id, listen, zookeeper))
    if cluster is not None and not is_about_a_broker:
        settings, findings = None, list(examine_cluster(cluster))
    else:
        settings, refusal = _settings(file, data_dir, node_id, sets, listen, zookeeper)
        findings = list(examine(settings, refusal, cluster))
    (_print_json if as_json else _print_table)(findings)
    if bundle is not None:
        _bundle(bundle, findings, settings, log_file)
    return SOMETHING_WRONG if _count(findings, State.PROBLEM) else FINE


def _settings(
    file: str | None,
    data_dir: str | None,
    node_id: str | None,
    sets: tuple[str, ...],
    listen: str | None,
    zookeeper: str | None,
) -> tuple[BrokerSettings | None, str | None]:
    flags = {"listeners": listeners_from(listen), "zookeeper.connect": zookeeper}
    try:
        return settings_from(file, data_dir, node_id, sets, **flags), None
    except (SettingError, PropertiesError) as error:
        return None, str(error)


def _ping(address: str) -> int:
    host, separator, port = address.rpartition(":")
    if not separator or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise click.BadParameter(f"{address!r} is not of the form HOST:PORT", param_hint="--ping")
    try:
        answering = probe(host.removeprefix("[").removesuffix("]") or "localhost", int(port))
    except OSError as error:
        advice = "start a broker there with `lamina serve`, or correct the address"
        warn(f"{address}: {(error.strerror or str(error)).lower()}; {advice}")
        return SOMETHING_WRONG
    if answering is None:
        advice = (
            "give the address of a broker's listener, not of its admin listener; one with TLS answers "
            "`lamina brokers --command-config FILE`"
        )
        warn(f"{address}: what listens there does not speak Kafka's protocol; {advice}")
        return SOMETHING_WRONG
    click.echo(f"{address}: {answering}")
    return FINE


def _print_table(findings: Sequence[Finding]) -> None:
    signs = {state: _sign(state) for state in State}
    rows = [(signs[finding.state], finding.name, finding.what, finding.advice) for finding in findings]
    shown = 4 if any(finding.advice for finding in findings) else 3
    print_table(("", "check", "result", "what to do")[:shown], (row[:shown] for row in rows))
    problems, warnings = _count(findings, State.PROBLEM), _count(findings, State.WARNING)
    click.echo(f"{_amount(problems, 'problem')}, {_amount(warnings, 'warning')}")


def _sign(state: State) -> str:
    """A word where the output cannot show the sign."""
    try:
        state.sign.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return state.value
    return state.sign


def _print_json(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_json(
            {
                "type": "finding",
                "name": finding.name,
                "state": finding.state.value,
                "what": finding.what,
                "advice": finding.advice,
            }
        )
    problems, warnings = _count(findings, State.PROBLEM), _count(findings, State.WARNING)
    print_json({"type": "summary", "problems": problems, "warnings": warnings})


def _count(findings: Sequence[Finding], state: State) -> int:
    return sum(finding.state is state for finding in findings)


def _amount(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def _bundle(path: str, findings: Sequence[Finding], settings: BrokerSettings | None, log_file: str | None) -> None:
    """Say what will be in it, then write it."""
    directories: list[str] = []
    if settings is not None:
        data_directory, log_directories = storage_paths(settings)
        inside = data_directory.rstrip("/") + "/"
        directories = [data_directory, *(log for log in log_directories if not log.startswith(inside))]
    parts = gather(findings, settings, directories, log_file)
    click.echo(f"\n{path} holds, and nothing else:", err=True)
    for name in parts:
        click.echo(f"  {name}: {CONTENTS[name]}", err=True)
    write_bundle(path, parts)
    click.echo("Look through it before you send it.", err=True)
