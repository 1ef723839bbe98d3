"""A command line that cannot be understood: one sentence that says what to type instead.

Owns how suggestions are worded; those for people who know Kafka's tools come from ``kafka_spelling``. Must not know any
command.
"""

import difflib
from collections.abc import Collection, Mapping

import click

from lamina.cli.kafka_spelling import OTHER_WORDS, advice, translation

_UNCUT = 1000
_BEHIND_THE_COMMAND = frozenset({"--bootstrap-server", "--command-config"})


class Complete(click.UsageError):
    """The message says what to do: no help needs to be named."""


class NotConfirmed(Complete):
    """A question could not be asked."""

    def __init__(self, question: str) -> None:
        super().__init__(f"there is no terminal to ask '{question}': give --yes to go ahead")


def sentence(error: click.UsageError) -> str:
    """What is wrong, and where help is; a suggestion needs none."""
    if isinstance(error, Complete):
        return error.message
    path = "lamina" if error.ctx is None else error.ctx.command_path
    instead = advice(path, error.option_name, _options(error.ctx)) if isinstance(error, click.NoSuchOption) else None
    if isinstance(error, click.NoSuchOption) and instead is not None:
        return f"no such option '{error.option_name}': {instead}"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return f"no such option '{error.option_name}': did you mean {' or '.join(error.possibilities)}?"
    text = error.format_message().strip()
    text = text[0].lower() + text[1:] if text[1:2].islower() else text
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option) and error.param.metavar:
        text = f"{text.rstrip('.')}: give {error.param.opts[0]} {error.param.metavar}"
    if text.endswith("?"):
        return text
    return f"{text.rstrip('.')}; see `{path} --help`"


def _options(ctx: click.Context | None) -> set[str] | None:
    """Those that the command has; a group's commands have others."""
    if ctx is None or isinstance(ctx.command, click.Group):
        return None
    return {name for parameter in ctx.command.params for name in parameter.opts}


class CommandGroup(click.Group):
    """A group that suggests what a wrong name was probably meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-")) and self.get_command(ctx, name) is None:
            raise self._unknown_command(ctx, args)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            meant = translation(ctx.command_path, given)
            if meant is not None:
                raise click.UsageError(f"No such option '{option}': did you mean `{meant}`?", ctx) from error
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

    def _unknown_command(self, ctx: click.Context, args: list[str]) -> click.UsageError:
        name, path = args[0], ctx.command_path
        instead = advice(path, name)
        if instead is not None:
            return Complete(f"no such command '{name}': {instead}", ctx)
        meant = translation(path, args)
        if meant is None:
            near = nearest_command(name, self.list_commands(ctx), OTHER_WORDS.get(path, {}))
            meant = None if near is None else f"{path} {near}"
        return click.UsageError(
            f"No such command '{name}'" + ("" if meant is None else f": did you mean `{meant}`?"), ctx
        )


def nearest_command(name: str, commands: Collection[str], others: Mapping[str, str]) -> str | None:
    bare = name.lower().removeprefix("kafka-").removesuffix(".sh").removesuffix(".bat")
    if bare in others:
        return others[bare]
    for known in (bare, f"{bare}s", bare.removesuffix("s")):
        if known in commands:
            return known
    close = difflib.get_close_matches(bare[:100], sorted(commands), n=1)
    return close[0] if close else None
