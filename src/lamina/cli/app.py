"""The command line's root: which commands there are.

A command's module is imported only when the command is called, so that help and completion stay quick. Must
not know what a command does.
"""

import sys
from dataclasses import dataclass
from importlib import import_module

import click

from lamina.cli.outcome import BAD_INPUT
from lamina.cli.usage import CommandGroup

SECTIONS = {
    "Run a broker": {
        "serve": "Run a broker.",
        "cluster": "Run a cluster on this machine: a ZooKeeper and some brokers.",
        "doctor": "Look for what would stop a broker, and say what to do.",
    },
    "Topics and records": {
        "topics": "Create, describe, change and delete topics.",
        "produce": "Send lines as records.",
        "consume": "Print the records of a topic.",
        "bench": "Measure how fast records go to a cluster and come back.",
    },
    "Groups and transactions": {
        "groups": "Show consumer groups and their lag, and reset their offsets.",
        "transactions": "Show transactions, find those that hang, and abort them.",
    },
    "Look inside": {
        "brokers": "Show the brokers of a cluster, rebalance it, and empty a broker.",
        "cleaner": "Show what is compacted and when, and why a record is still there.",
        "watch": "Show connections and slow requests, and change log levels.",
        "dump": "Show what is in the files of a log directory.",
        "verify": "Check a log directory, or one partition, without writing.",
    },
    "Security": {
        "security": "Make certificates, passwords and settings for brokers and clients.",
        "users": "Show, make and remove users who log in by SCRAM.",
        "acls": "Show, add and remove access rules (ACLs).",
        "quotas": "Show and change how much users, client ids and addresses may use.",
    },
    "Operate": {
        "configs": "Show and change the settings of topics and brokers.",
        "features": "Show and change the feature levels of a cluster.",
        "compact": "Compact topics now, or the directory of a stopped broker.",
        "backup": "Back up a broker, running or stopped.",
        "restore": "Restore a backup into an empty directory.",
        "adopt": "Import partition directories written by Kafka or another broker.",
    },
}
"""The modules of this room that hold a ``command``, as help groups them, each with its line."""

COMMANDS = {name: line for commands in SECTIONS.values() for name, line in commands.items()}

NOT_ON_WINDOWS = frozenset({"adopt", "backup", "cluster", "compact", "doctor", "dump", "restore", "serve", "verify"})
"""Commands that touch a broker's files or run one; a client's work anywhere."""


@dataclass(slots=True)
class Invocation:
    """What holds for the whole command line."""

    debug: bool = False


class LazyGroup(CommandGroup):
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
        width = max(map(len, COMMANDS))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


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
