"""``lamina serve``: from a command line to a running broker, and to the status that it ends with.

Owns the order of it. What is printed lives in ``start_lines`` and ``log_lines``. Must
not know requests or files.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import click

from lamina.cli.options.settings import listeners_from, settings_from, settings_options
from lamina.cli.outcome import BAD_INPUT, FINE, INTERRUPTED, SOMETHING_WRONG, describe, warn
from lamina.settings.authorization import LAMINA_AUDIT_LOG
from lamina.settings.definition import SettingError
from lamina.settings.properties import PropertiesError
from lamina.settings.values import BrokerSettings

_STANDARD_ERROR = 2


@click.command(
    "serve",
    epilog="""\b
Exit status: 0 stopped by SIGTERM or Ctrl-C, 1 could not start or could not go on, 2 bad settings.

\b
Examples:
  lamina serve
  lamina serve --data-dir /var/lib/lamina --listen 127.0.0.1:0
  lamina serve --config server.properties --set log.retention.hours=24
  lamina serve --node-id 2 --zookeeper zk1:2181,zk2:2181,zk3:2181/lamina""",
)
@settings_options
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="The address to listen on; port 0 takes a free one.  [default: 127.0.0.1:9092]",
)
@click.option(
    "--zookeeper",
    metavar="HOST:PORT,…/CHROOT",
    help="The ZooKeeper ensemble of the cluster to join; the same as --set zookeeper.connect=….  [default: none]",
)
@click.option("--json-logs", is_flag=True, help="Log in JSON, one object per line.")
def command(
    file: str | None,
    data_dir: str | None,
    node_id: str | None,
    sets: tuple[str, ...],
    listen: str | None,
    zookeeper: str | None,
    json_logs: bool,
) -> int:
    """Run a broker."""
    from lamina.cli.serve.log_lines import log_audit, start_logging

    listeners = listeners_from(listen)
    try:
        flags = {"listeners": listeners, "zookeeper.connect": zookeeper}
        settings = settings_from(file, data_dir, node_id, sets, **flags)
    except (SettingError, PropertiesError) as error:
        warn(str(error))
        return BAD_INPUT
    _keep_descriptors()
    start_logging(as_json=json_logs)
    try:
        log_audit(settings.get(LAMINA_AUDIT_LOG) or None)
    except OSError as error:
        warn(f"{LAMINA_AUDIT_LOG.name}: {describe(error)}")
        return SOMETHING_WRONG
    return _run(settings, quiet=json_logs)


def _run(settings: BrokerSettings, *, quiet: bool) -> int:
    from lamina.broker.cycle_collector import loading

    with loading():
        from lamina.broker.server import Server
        from lamina.cli.printing.progress import bar
        from lamina.cli.serve.start_lines import log_warnings, print_start
        from lamina.storage import StartError

    try:
        _check_directories(settings)
    except StartError as error:
        warn(str(error))
        return SOMETHING_WRONG
    log_warnings(settings)
    server = Server(settings)
    # Not Python's own handler, which asyncio would replace by one that waits until recovery is over.
    signal.signal(signal.SIGINT, _interrupt)
    try:
        with bar("opening logs", of_bytes=False) as progress, asyncio.Runner(loop_factory=_loop_factory()) as runner:
            reason = runner.run(server.run(lambda started: print_start(started, quiet=quiet), progress))
    except StartError as error:
        warn(str(error))
        return SOMETHING_WRONG
    except KeyboardInterrupt:
        warn("interrupted before the broker had started")
        return INTERRUPTED
    if reason is not None:
        warn(reason)
        return SOMETHING_WRONG
    return FINE


def _check_directories(settings: BrokerSettings) -> None:
    """Before any port is taken: who starts a second broker by mistake should hear of the first, not of its port."""
    from lamina.cli.lock_holder import holder
    from lamina.log.directory import LOCK
    from lamina.storage import StartError, check_data_directory, storage_paths

    data_directory, log_directories = storage_paths(settings)
    check_data_directory(data_directory)
    for path in log_directories:
        pid = holder(os.path.join(path, LOCK))
        if pid is not None:
            who = f"process {pid}" if pid else "a process that is not visible here, perhaps in a container"
            raise StartError(f"{path} is in use by {who}: stop it, or choose another directory with --data-dir DIR")


def _keep_descriptors() -> None:
    """Whoever started this process may hold a lock that ends with it: no engine or other child goes on holding it.

    asyncio closes such descriptors in children; uvloop does not.
    """
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # That of the listing itself is closed.
            os.set_inheritable(int(name), int(name) <= _STANDARD_ERROR)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one; asyncio's own loop, slower, where there is not."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
