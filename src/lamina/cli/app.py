"""The command line's root: which commands there are.

A command's module is imported only when the command is called, so that help and completion stay quick. Must
not know what a command does.
"""

import sys
from dataclasses import dataclass
from importlib import import_module

import click

from lamina.cli.status import BAD_INPUT

COMMANDS = {
    "adopt": "Take partitions in that a broker does not know.",
    "backup": "Copy what a broker keeps, while it runs or while it is stopped.",
    "bench": "Measure how fast records go to a cluster and come back.",
    "brokers": "Show the brokers of a cluster.",
    "cleaner": "See what is being compacted, what was, and why a record is still there.",
    "compact": "Compact topics now, or a directory that no broker uses.",
    "configs": "Show and change settings of topics and brokers.",
    "consume": "Print the records of a topic.",
    "doctor": "Look for what stops a broker, and say what to do.",
    "dump": "Show what is in the files of a log directory.",
    "features": "Show and change the levels of features that a cluster agrees on.",
    "groups": "Look at consumer groups, and change where they go on.",
    "produce": "Send lines as records.",
    "restore": "Bring a backup back into an empty directory.",
    "serve": "Run a broker.",
    "transactions": "See transactions, find those that hang, and abort them.",
    "topics": "Make, look at, change and delete topics.",
    "watch": "See who is connected and what is slow, and change what a broker logs.",
    "verify": "Check a log directory, or one partition's, without writing.",
}
"""The modules of this room that hold a ``command``, with the line that help shows."""

NOT_ON_WINDOWS = frozenset({"adopt", "backup", "compact", "doctor", "dump", "restore", "serve", "verify"})
"""Commands that touch a broker's files or run one; a client's work anywhere."""


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
        if sys.platform == "win32" and cmd_name in NOT_ON_WINDOWS:
            return _refused_on_windows(cmd_name)
        command = import_module(f"lamina.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _refused_on_windows(name: str) -> click.Command:
    """Says so in one sentence, whatever else is on the line; the command's module could not even be imported."""

    def refuse() -> int:
        click.echo(
            f"lamina: lamina {name} does not run on Windows: use Linux or macOS, or Linux in WSL or a container",
            err=True,
        )
        return BAD_INPUT

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, context_settings=anything, add_help_option=False)


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
  lamina topics create orders --partitions 3
  lamina produce orders --file orders.txt
  lamina consume orders
  lamina doctor""",
)
@click.option("--debug", is_flag=True, help="Show a traceback when lamina itself fails.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_obj
def app(invocation: Invocation, debug: bool) -> None:
    """A Kafka-compatible commit log."""
    invocation.debug = debug
