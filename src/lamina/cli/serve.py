"""``lamina serve``: from a command line to a running broker, and to the status that it ends with.

Owns the options and how they become settings. What is printed lives in ``start_lines`` and ``log_lines``. Must
not know requests or files.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click

from lamina.cli.status import BAD_INPUT, FINE, INTERRUPTED, SOMETHING_WRONG

if TYPE_CHECKING:
    from lamina.settings.values import BrokerSettings


@click.command(
    "serve",
    epilog="""\b
Exit status: 0 stopped by SIGTERM or Ctrl-C, 1 cannot start or cannot go on, 2 bad settings.

\b
Examples:
  lamina serve
  lamina serve --data-dir /var/lib/lamina --listen 127.0.0.1:0
  lamina serve --config server.properties --set log.retention.hours=24""",
)
@click.option("--config", "file", metavar="FILE", help="Kafka's server.properties.")
@click.option("--data-dir", metavar="DIR", help="Where everything is kept.  [default: ./lamina-data]")
@click.option(
    "--listen", metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.  [default: 127.0.0.1:9092]"
)
@click.option("--node-id", metavar="N", help="The number of this broker.  [default: 1]")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Any setting by Kafka's name; may be repeated.")
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
def command(
    file: str | None,
    data_dir: str | None,
    listen: str | None,
    node_id: str | None,
    sets: tuple[str, ...],
    json_logs: bool,
) -> int:
    """Run a broker."""
    from lamina.cli.log_lines import start_logging
    from lamina.settings.definition import SettingError
    from lamina.settings.properties import PropertiesError

    flags = {"lamina.data.dir": data_dir, "node.id": node_id, "listeners": listen and f"PLAINTEXT://{listen}"}
    try:
        settings = _settings(file, {name: text for name, text in flags.items() if text is not None}, sets)
    except (SettingError, PropertiesError) as error:
        click.echo(f"lamina: {error}", err=True)
        return BAD_INPUT
    start_logging(as_json=json_logs)
    return _run(settings, quiet=json_logs)


def _settings(file: str | None, flags: dict[str, str], sets: tuple[str, ...]) -> "BrokerSettings":
    from lamina.settings.properties import load
    from lamina.settings.resolve import resolve_broker

    given: dict[str, str] = {}
    if file is not None:
        with open(file, "rb") as opened:
            given = load(opened.read())
    named: dict[str, str] = {}
    for text in sets:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form key=value", param_hint="--set")
        named[name.strip()] = value.strip()
    return resolve_broker(file=given, flags=flags, sets=named)


def _run(settings: "BrokerSettings", *, quiet: bool) -> int:
    from lamina.broker.server import Server
    from lamina.broker.storage import StartError
    from lamina.cli.start_lines import print_start, warn

    warn(settings)
    server = Server(settings)
    # Not Python's own handler, which asyncio would replace by one that waits until recovery is over.
    signal.signal(signal.SIGINT, _interrupt)
    try:
        with _recovery_bar() as progress, asyncio.Runner(loop_factory=_loop_factory()) as runner:
            reason = runner.run(server.run(lambda opened, bound: print_start(opened, bound, quiet=quiet), progress))
    except StartError as error:
        click.echo(f"lamina: {error}", err=True)
        return SOMETHING_WRONG
    except KeyboardInterrupt:
        click.echo("lamina: stopped before it had started", err=True)
        return INTERRUPTED
    if reason is not None:
        click.echo(f"lamina: {reason}", err=True)
        return SOMETHING_WRONG
    return FINE


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one; asyncio's own loop, slower, where there is not."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextmanager
def _recovery_bar() -> Iterator[Callable[[int, int], None] | None]:
    """A bar for a person who watches, while logs are opened; nothing otherwise."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("opening logs", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)

    def progress(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if done < total:
            bar.start()
        else:
            bar.stop()

    try:
        yield progress
    finally:
        bar.stop()
