"""A command line that cannot be understood: one sentence that says what to type instead.

Owns the suggestions, also for those who know Kafka's tools. Must not know any command.
"""

import difflib
from collections.abc import Collection

import click

KAFKA_TOOLS = {
    "console-consumer": "consume",
    "console-producer": "produce",
    "consumer-groups": "groups",
    "consumer-perf-test": "bench consume",
    "delete-records": "topics delete-records",
    "dump-log": "dump",
    "get-offsets": "topics offsets",
    "help": "--help",
    "producer-perf-test": "bench produce",
    "server-start": "serve",
}
"""Kafka's scripts, without ``kafka-`` and ``.sh``, where the command has another name."""

_UNCUT = 1000
_BEHIND_THE_COMMAND = frozenset({"--bootstrap-server", "--command-config"})


class NotConfirmed(click.UsageError):
    """A question could not be asked."""

    def __init__(self, question: str) -> None:
        super().__init__(f"there is no terminal to ask '{question}': give --yes to go ahead")


def sentence(error: click.UsageError) -> str:
    """What is wrong, and where help is; a suggestion needs none."""
    if isinstance(error, NotConfirmed):
        return error.message
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return f"no such option '{error.option_name}': did you mean {' or '.join(error.possibilities)}?"
    text = error.format_message().strip()
    text = text[0].lower() + text[1:] if text[1:2].islower() else text
    if text.endswith("?"):
        return text
    path = "lamina" if error.ctx is None else error.ctx.command_path
    return f"{text.rstrip('.')}; see `{path} --help`"


class CommandGroup(click.Group):
    """A group that suggests what a wrong name was probably meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-")) and self.get_command(ctx, name) is None:
            raise click.UsageError(self._unknown_command(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            if option.lstrip("-") in self.list_commands(ctx):
                raise click.UsageError(
                    f"No such option '{option}': did you mean `{ctx.command_path} {option.lstrip('-')}`?", ctx
                ) from error
            if option in _BEHIND_THE_COMMAND:
                raise click.UsageError(f"Put {option} behind the command", ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Not click's own, which cuts what a command says of itself."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(limit=_UNCUT)) for name, one in commands if one])

    def _unknown_command(self, ctx: click.Context, name: str) -> str:
        near = nearest_command(name, self.list_commands(ctx), KAFKA_TOOLS if ctx.parent is None else {})
        question = "" if near is None else f": did you mean `{ctx.command_path} {near}`?"
        return f"No such command '{name}'{question}"


def nearest_command(name: str, commands: Collection[str], others: dict[str, str]) -> str | None:
    bare = name.lower().removeprefix("kafka-").removesuffix(".sh").removesuffix(".bat")
    if bare in others:
        return others[bare]
    for known in (bare, f"{bare}s", bare.removesuffix("s")):
        if known in commands:
            return known
    close = difflib.get_close_matches(bare[:100], sorted(commands), n=1)
    return close[0] if close else None
