"""``lamina acls remove``."""

import click

from lamina.cli.acls.filters import filters_from
from lamina.cli.acls.resources import (
    Resource,
    acl_row,
    in_order,
    operation_option,
    pattern_option,
    resource_options,
    sentence,
)
from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json
from lamina.client.cluster import Cluster
from lamina.security.acls import Operation, PatternType
from lamina.security.hosts import rule_host


@click.command(
    "remove",
    epilog="""\b
Examples:
  lamina acls remove --principal User:alice --topic orders
  lamina acls remove --principal User:alice --yes
  lamina acls remove --topic orders --operation Write --resource-pattern-type literal""",
)
@click.option("--principal", "principals", metavar="PRINCIPAL", multiple=True, help="Only rules about this principal.")
@click.option("--host", "hosts", metavar="ADDRESS", multiple=True, help="Only rules about this address.")
@resource_options
@operation_option("only rules with it")
@pattern_option("any", "any", "match", "literal", "prefixed")
@as_json_option
@yes_option
@cluster_options
def remove(
    cluster: Cluster,
    resources: list[Resource],
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[Operation, ...],
    pattern: PatternType,
    as_json: bool,
    yes: bool,
) -> int:
    """Remove access rules, after a question: those that match everything that is named."""
    from lamina.client.access_rules import AccessRules, exactly

    if not (resources or principals or hosts or operations):
        raise click.UsageError("say which rules: by --principal, --topic, --operation, …")
    rules = AccessRules(cluster)
    # A rule that another client made may be about what is no address.
    hosts = tuple(rule_host(host) or host for host in hosts)
    wanted = filters_from(resources, principals, operations, pattern, hosts)
    found = in_order({acl for one in wanted for acl in rules.found(one)})
    if not found:
        warn("no access rule matches; `lamina acls list` shows them")
        return SOMETHING_WRONG
    shown = "; ".join(map(sentence, found))
    confirm(f"Remove {len(found)} access {'rule' if len(found) == 1 else 'rules'}: {shown}?", yes)
    for acl in in_order(rules.remove(map(exactly, found))):
        if as_json:
            print_json(acl_row(acl))
        else:
            click.echo(f"Removed: {sentence(acl)}.")
    return FINE
