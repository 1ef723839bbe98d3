"""What a broker says when it starts: one line for a program, a few for a person, and loud warnings.

Must not start anything.
"""

import json
import logging
import os
import shlex
import shutil
import sys

import click

from lamina import __version__
from lamina.broker.network.listening import Bound
from lamina.broker.server import Started
from lamina.peer.addresses import DEFAULT_BOOTSTRAP_SERVERS
from lamina.settings.admin_access import is_reading_open
from lamina.settings.authorization import ALLOW_EVERYONE_IF_NO_ACL_FOUND, AUTHORIZER_CLASS_NAME, lets_nobody_begin
from lamina.settings.inter_broker_login import broker_principals
from lamina.settings.listeners import ANY_ADDRESSES, Listener, admin_listeners, broker_listener_name, listeners
from lamina.settings.ssl_stores import listener_ssl
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper_options import zookeeper_options

logger = logging.getLogger(__name__)

_Listening = tuple[Bound, str]
"""A listener, and the address to connect to."""


def log_warnings(settings: BrokerSettings) -> None:
    """Say what deserves attention before anything is opened."""
    for warning in settings.warnings:
        logger.warning("%s", warning)
    between_brokers, opened = broker_listener_name(settings), listeners(settings)
    for listener in opened:
        if not listener.is_for_this_machine and (missing := _missing(settings, listener)) is not None:
            logger.warning(
                "OPEN TO OTHERS: %s listens on %s without %s: anyone who reaches that "
                "address can read, write and delete everything; 127.0.0.1 is for this machine alone",
                listener.name,
                listener.host or "every address",
                missing,
            )
    if between_brokers is not None and len(opened) == 1:
        logger.warning(
            "%s is the listener of clients and of brokers: %s there can pose as a broker, and ask as any user; "
            "inter.broker.listener.name gives brokers a listener of their own",
            between_brokers,
            _who_may_pose(settings),
        )
    if settings.get(AUTHORIZER_CLASS_NAME) and settings[ALLOW_EVERYONE_IF_NO_ACL_FOUND]:
        logger.warning(
            "%s: while there is no rule about the cluster, everybody may alter it, and its access rules",
            ALLOW_EVERYONE_IF_NO_ACL_FOUND.name,
        )
    for listener in admin_listeners(settings):
        if listener.is_for_this_machine:
            continue
        if is_reading_open(settings):
            logger.warning(
                "OPEN TO OTHERS: the admin listener is on %s without authentication%s: anyone who reaches that address "
                "can read settings, topics and who is connected; 127.0.0.1 is for this machine alone, and "
                "lamina.admin.authentication=required asks for a token",
                listener.host or "every address",
                "" if listener.protocol == "HTTPS" else " or encryption",
            )
        elif listener.protocol != "HTTPS":
            logger.warning(
                "the admin listener is on %s without encryption: whoever is on the way there can read the tokens; "
                "127.0.0.1 is for this machine alone, and https://HOST:PORT in lamina.admin.listeners hides them",
                listener.host or "every address",
            )


def _who_may_pose(settings: BrokerSettings) -> str:
    if settings.get(AUTHORIZER_CLASS_NAME):
        return "whoever is a super user or may do ClusterAction"
    return "any client that is let in" if broker_principals(settings) is None else "whoever logs in as a broker"


def _missing(settings: BrokerSettings, listener: Listener) -> str | None:
    """What a listener lets everybody in without; ``None`` where clients show who they are."""
    if listener.protocol == "PLAINTEXT":
        return "authentication or encryption"
    ssl = listener_ssl(settings, listener) if listener.protocol == "SSL" else None
    return "authentication" if ssl is not None and ssl.client_auth != "required" else None


def print_start(started: Started, *, quiet: bool) -> None:
    """The line for a program (docs/cli.md), but not on a terminal; then, unless ``quiet``, those for a person."""
    advertised = {one.name: one for one in started.advertised}
    addresses = [
        advertised.get(one.listener.name, one.taken).address if _is_everywhere(one.listener) else one.taken.address
        for one in started.bound
    ]
    facts = {
        "listening": [
            {"name": one.listener.name, "host": one.listener.host, "port": one.port, "address": address}
            for one, address in zip(started.bound, addresses, strict=True)
        ],
        "admin": [
            {"host": one.host, "port": one.port, "url": f"{one.protocol.lower()}://{one.address}"}
            for one in started.admin
        ],
        "data_dir": started.parts.storage.data_directory,
        "log_dirs": [directory.path for directory in started.parts.directories],
        "node_id": started.parts.metadata.node_id,
        "cluster_id": started.parts.metadata.image.cluster_id,
        "version": __version__,
        "pid": os.getpid(),
        "recovered_partitions": 0 if started.parts.storage.was_clean else len(started.parts.partitions),
        "open_files_limit": started.open_files_limit,
    }
    if quiet or not sys.stdout.isatty():
        click.echo(json.dumps(facts))
    for path in started.parts.unknown:
        logger.warning(
            "%s is not in this broker's metadata and is ignored: `lamina adopt` imports it while the broker is stopped",
            path,
        )
    if not quiet:
        _print_for_a_person(started, addresses)
    sys.stdout.flush()


def _print_for_a_person(started: Started, addresses: list[str]) -> None:
    bold = click.style(f"lamina {__version__}", bold=True)
    partitions = len(started.parts.partitions)
    for_clients, for_brokers = _by_purpose(started, addresses)
    places = [
        f"every address, port {one.port}" if _is_everywhere(one.listener) else address for one, address in for_clients
    ]
    click.echo(f"{bold} is listening on {', '.join(places)}")
    everywhere = [address for one, address in for_clients if _is_everywhere(one.listener)]
    if everywhere:
        click.echo(f"  clients     are told to connect to {', '.join(everywhere)}")
        if any(not one.listener.host for one, _ in for_clients) and not started.is_advertised:
            click.echo("              for those on other machines: --set advertised.listeners=PLAINTEXT://NAME:PORT")
    _print_cluster(started, [address for _, address in for_brokers])
    checked = "" if started.parts.storage.was_clean or not partitions else ", recovered after an unclean shutdown"
    noun = "partition" if partitions == 1 else "partitions"
    click.echo(f"  data        {started.parts.storage.data_directory} ({partitions} {noun}{checked})")
    if started.admin:
        urls = ", ".join(f"{one.protocol.lower()}://{one.address}/v1/" for one in started.admin)
        click.echo(f"  admin       {urls}")
    click.echo(f"  open files  up to {started.open_files_limit}")
    why_not = started.parts.cleaner.why_not()
    click.echo(f"  compaction  {'on' if why_not is None else f'off: {why_not}'}")
    click.echo("  stop        Ctrl-C, or SIGTERM")
    if not lets_nobody_begin(started.parts.metadata.settings):
        bound, address = for_clients[0]
        options = how_to_connect(bound.listener, address)
        click.echo(f"  try         echo hello | {_program()} produce greetings --create{options}")


def how_to_connect(listener: Listener, address: str) -> str:
    """The options of a command that connects to this listener."""
    where = "" if address == DEFAULT_BOOTSTRAP_SERVERS else f" --bootstrap-server {address}"
    return where if listener.protocol == "PLAINTEXT" else f"{where} --command-config FILE"


def _by_purpose(started: Started, addresses: list[str]) -> tuple[list[_Listening], list[_Listening]]:
    """The listeners for clients, and the one between brokers where clients do not use it too."""
    listening = list(zip(started.bound, addresses, strict=True))
    member = started.parts.member_parts
    if member is None or len(listening) == 1:
        return listening, []
    for_brokers = [one for one in listening if one[0].listener.name == member.listener_name]
    return [one for one in listening if one not in for_brokers], for_brokers


def _print_cluster(started: Started, for_brokers: list[str]) -> None:
    """Of a member: who it is, where its cluster is kept, and where other brokers connect."""
    metadata = started.parts.metadata
    options = zookeeper_options(metadata.settings)
    if options is None:
        return
    ensemble = f"{','.join(options.hosts)}{options.chroot}"
    click.echo(f"  cluster     broker {metadata.node_id} of {metadata.image.cluster_id}, ZooKeeper at {ensemble}")
    if for_brokers:
        click.echo(f"  brokers     connect to {', '.join(for_brokers)}")


def _is_everywhere(listener: Listener) -> bool:
    return not listener.host or listener.host in ANY_ADDRESSES


def _program() -> str:
    """What to type to run this program again: `lamina` where the shell finds it, else the path that was typed."""
    typed = sys.argv[0]
    if os.path.basename(typed) == "__main__.py":
        return f"{os.path.basename(sys.executable)} -m lamina"
    if os.path.basename(typed) != "lamina":
        return "lamina"
    found = shutil.which("lamina")
    is_found = found is not None and os.path.realpath(found) == os.path.realpath(typed)
    return "lamina" if is_found else shlex.quote(os.path.relpath(typed) if _is_below_here(typed) else typed)


def _is_below_here(path: str) -> bool:
    return os.path.abspath(path).startswith(os.getcwd() + os.sep)
