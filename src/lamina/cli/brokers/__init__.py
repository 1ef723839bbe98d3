"""``lamina brokers``: who is in the cluster, and what can be done with brokers, one module each."""

import click

from lamina.cli.brokers.decommission import decommission
from lamina.cli.brokers.drain import drain
from lamina.cli.brokers.listing import list_brokers
from lamina.cli.brokers.rebalance import rebalance
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import FINE
from lamina.cli.usage import CommandGroup
from lamina.client.cluster import Cluster


class BrokersGroup(CommandGroup):
    """Without a command it lists: options alone are no mistake."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Not the help that other groups show for an empty line."""
        return super().parse_args(ctx, args or ["--"])


@click.group(
    "brokers",
    cls=BrokersGroup,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",
    epilog="""\b
Examples:
  lamina brokers
  lamina brokers --bootstrap-server kafka1:9092 --json
  lamina brokers rebalance
  lamina brokers drain 2
  lamina brokers decommission 2""",
)
@as_json_option
@cluster_options
@click.pass_context
def command(ctx: click.Context, cluster: Cluster, as_json: bool) -> int:
    """Show the brokers of a cluster, rebalance it, and empty a broker."""
    if ctx.invoked_subcommand is None:
        return list_brokers(cluster, as_json=as_json)
    given = [name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    if given:
        raise click.UsageError(f"Put the options behind `{ctx.invoked_subcommand}`.")
    return FINE


for subcommand in (decommission, drain, rebalance):
    command.add_command(subcommand)
