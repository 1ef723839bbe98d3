"""``lamina security init``."""

import re
import secrets
from pathlib import Path

import click

from lamina.cli.outcome import BAD_INPUT, FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.clocks import SYSTEM_CLOCKS
from lamina.settings.listeners import PORT_MAX

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_BROKER = re.compile(r"(?P<id>[0-9]{1,9})=(?P<host>.+)")
_RESERVED = ("server", "broker", "ca", "ca-key")
_PASSWORD_BYTES = 24


@click.command(
    "init",
    epilog="""\b
Exit status: 0 fine, 1 the files could not be written, 2 bad input.

\b
Examples:
  lamina security init secure
  lamina security init secure --host kafka.example.com --user orders --user billing
  lamina security init secure --broker 1=m1.example.com --broker 2=m2.example.com \\
    --zookeeper zk1:2181,zk2:2181,zk3:2181/lamina --found-in /etc/lamina""",
)
@click.argument("directory", metavar="DIR")
@click.option("--host", metavar="HOST", help="The name by which clients reach the one broker.  [default: 127.0.0.1]")
@click.option("--broker", "brokers", metavar="ID=HOST", multiple=True, help="A broker of a cluster; may be repeated.")
@click.option("--zookeeper", metavar="HOST:PORT,…/CHROOT", help="The cluster's ZooKeeper ensemble.")
@click.option(
    "--found-in", metavar="PATH", help="Where each broker finds its files on its own machine.  [default: DIR]"
)
@click.option(
    "--user", "users", metavar="NAME", multiple=True, help="An application; may be repeated.  [default: client]"
)
@click.option("--port", metavar="P", type=int, default=9092, help="For applications; P+1 for brokers.  [default: 9092]")
@click.option("--days", metavar="N", type=int, default=825, help="How long certificates are valid.  [default: 825]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
def init(
    directory: str,
    host: str | None,
    brokers: tuple[str, ...],
    zookeeper: str | None,
    found_in: str | None,
    users: tuple[str, ...],
    port: int,
    days: int,
    as_json: bool,
) -> int:
    """Make all that brokers and clients need to trust each other and nobody else, in a directory that is not there yet.

    A private certificate authority; for each broker a certificate and a server.properties; a certificate and
    admin.properties for an administrator, who may do everything; for each application a password and NAME.properties.
    Each file can be read by its owner alone, and nothing is overwritten.
    """
    try:
        from lamina.offline.security_files import (
            BrokerPlace,
            SecurityFilesError,
            SecurityPlan,
            security_files,
            write_new,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        warn("certificates need the package cryptography: pip install 'lamina[security]' brings it")
        return SOMETHING_WRONG
    places = [_place(given) for given in brokers] or [(1, host or "127.0.0.1")]
    users = users or ("client",)
    problem = _problem(host, brokers, zookeeper, users, places, port, days)
    if problem is not None:
        warn(problem)
        return BAD_INPUT
    made_in = Path(directory).absolute()
    plan = SecurityPlan(made_in, tuple(BrokerPlace(*place) for place in places), users, zookeeper, found_in, port, days)
    files = security_files(plan, SYSTEM_CLOCKS.now_ms(), lambda: secrets.token_urlsafe(_PASSWORD_BYTES))
    try:
        write_new(made_in, files)
    except SecurityFilesError as error:
        warn(str(error))
        return SOMETHING_WRONG
    if as_json:
        for path in files:
            print_json({"type": "file", "path": str(made_in / path)})
    else:
        click.echo(f"Made {len(files)} files in {directory}; each can be read by you alone.")
        click.echo(f"Keep {directory}/ca-key.pem somewhere else: whoever has it can be anybody.")
    return FINE


def _place(given: str) -> tuple[int, str]:
    match = _BROKER.fullmatch(given)
    if match is None:
        raise click.BadParameter(f"{given!r} is not of the form ID=HOST", param_hint="--broker")
    return int(match["id"]), match["host"]


def _problem(
    host: str | None,
    brokers: tuple[str, ...],
    zookeeper: str | None,
    users: tuple[str, ...],
    places: list[tuple[int, str]],
    port: int,
    days: int,
) -> str | None:
    """The first thing that makes no sense."""
    if host is not None and brokers:
        return "--host is for one broker alone: each --broker has a host of its own"
    if bool(brokers) != (zookeeper is not None):
        return "a cluster needs both --broker, once for each, and --zookeeper; one broker alone needs neither"
    if len({node_id for node_id, _ in places}) < len(places):
        return "--broker: each id can be given once"
    for _, name in places:
        if not _HOST.fullmatch(name):
            return f"{name!r} is no name of a host"
    if len(set(users)) < len(users):
        return "--user: each name can be given once"
    for user in users:
        if not _NAME.fullmatch(user):
            return f"--user {user!r}: a name has up to 64 letters, digits, '.', '_' and '-'"
        if user in ("admin", *_RESERVED) or user.startswith("broker-"):
            return f"--user {user!r}: a file of that name is made for another purpose; take another name"
    if not 0 < port < PORT_MAX:
        return f"--port {port}: must be from 1 to {PORT_MAX - 1}"
    if not 0 < days <= 36_500:
        return f"--days {days}: must be from 1 to 36500"
    return None
