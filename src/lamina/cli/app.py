"""The command line's root: which commands there are.

A command's module is imported only when the command is called, so that help and completion stay quick. Must
not know what a command does.
"""

from dataclasses import dataclass
from importlib import import_module

import click

COMMANDS = {
    "adopt": "Take partitions in that a broker does not know.",
    "bench": "Measure how fast records go to a cluster and come back.",
    "brokers": "Show the brokers of a cluster.",
    "consume": "Print the records of a topic.",
    "dump": "Show what is in the files of a log directory.",
    "produce": "Send lines as records.",
    "serve": "Run a broker.",
    "verify": "Check a log directory, or one partition's, without writing.",
}
"""The modules of this room that hold a ``command``, with the line that help shows."""


@dataclass(slots=True)
class Invocation:
    """What holds for the whole command line."""

    debug: bool = False


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"lamina.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from lamina import __version__

        click.echo(f"lamina {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  lamina serve
  lamina dump /var/lib/lamina/orders-0/00000000000000000000.log
  lamina verify --dir /var/lib/lamina""",
)
@click.option("--debug", is_flag=True, help="Show a traceback when lamina itself fails.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_obj
def app(invocation: Invocation, debug: bool) -> None:
    """A Kafka-compatible commit log."""
    invocation.debug = debug
