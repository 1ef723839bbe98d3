"""``lamina acls list``."""

import click

from lamina.cli.acls.filters import filters_from
from lamina.cli.acls.resources import (
    Resource,
    acl_row,
    in_order,
    operation_option,
    pattern_option,
    resource_options,
)
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.client.cluster import Cluster
from lamina.security.acls import Operation, PatternType

_COLUMNS = ("resource_type", "resource", "pattern_type", "principal", "host", "operation", "permission")


@click.command(
    "list",
    epilog="""\b
Examples:
  lamina acls list
  lamina acls list --topic orders --resource-pattern-type match
  lamina acls list --principal User:alice --json""",
)
@click.option("--principal", "principals", metavar="PRINCIPAL", multiple=True, help="Only rules about this principal.")
@resource_options
@operation_option("only rules with it")
@pattern_option("any", "any", "match", "literal", "prefixed")
@as_json_option
@cluster_options
def list_acls(
    cluster: Cluster,
    resources: list[Resource],
    principals: tuple[str, ...],
    operations: tuple[Operation, ...],
    pattern: PatternType,
    as_json: bool,
) -> int:
    """Show access rules: all, or those about some resources and principals."""
    from lamina.client.access_rules import AccessRules

    rules = AccessRules(cluster)
    wanted = filters_from(resources, principals, operations, pattern)
    rows = [acl_row(acl) for acl in in_order({acl for one in wanted for acl in rules.found(one)})]
    if as_json:
        for row in rows:
            print_json(row)
    elif not print_table(
        [name.replace("_", " ") for name in _COLUMNS], [[row[name] for name in _COLUMNS] for row in rows]
    ):
        click.echo("There are no such access rules.")
    return FINE
