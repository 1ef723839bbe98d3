"""``lamina acls add``."""

from itertools import product

import click

from lamina.cli.acls.resources import (
    Resource,
    acl_row,
    operation_option,
    pattern_option,
    resource_options,
    sentence,
)
from lamina.cli.acls.unmatched import literal_stars, matching_host, refuse_unmatched
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import print_json
from lamina.client.cluster import Cluster
from lamina.errors import InvalidRequest
from lamina.security.access_index import ANY_HOST
from lamina.security.acl_filters import Acl, new_acl
from lamina.security.acls import Operation, PatternType, Permission, ResourceType

_OF_PRODUCERS = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_OF_CONSUMERS = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


@click.command(
    "add",
    epilog="""\b
Examples:
  lamina acls add --allow-principal User:alice --operation Read --operation Write --topic orders
  lamina acls add --allow-principal User:app --consumer --topic orders --group billing
  lamina acls add --allow-principal User:app --producer --topic app. --resource-pattern-type prefixed
  lamina acls add --deny-principal User:bob --deny-host 10.0.0.7 --operation All --topic '*'""",
)
@click.option(
    "--allow-principal", metavar="PRINCIPAL", multiple=True, help="Who may, such as User:alice; User:* is all."
)
@click.option(
    "--deny-principal", metavar="PRINCIPAL", multiple=True, help="Who may not; this wins over what is allowed."
)
@click.option("--allow-host", metavar="ADDRESS", multiple=True, help="Only from this address.  [default: any]")
@click.option("--deny-host", metavar="ADDRESS", multiple=True, help="Only from this address.  [default: any]")
@click.option("--producer", is_flag=True, help="What a producer needs of the topics and transactional ids.")
@click.option("--consumer", is_flag=True, help="What a consumer needs of the topics and groups.")
@resource_options
@operation_option("needed unless --producer or --consumer is given")
@pattern_option("literal", "literal", "prefixed")
@as_json_option
@cluster_options
def add(
    cluster: Cluster,
    allow_principal: tuple[str, ...],
    deny_principal: tuple[str, ...],
    allow_host: tuple[str, ...],
    deny_host: tuple[str, ...],
    producer: bool,
    consumer: bool,
    resources: list[Resource],
    operations: tuple[Operation, ...],
    pattern: PatternType,
    as_json: bool,
) -> int:
    """Add access rules; one that is there already stays as it is."""
    from lamina.client.access_rules import AccessRules

    if not allow_principal and not deny_principal:
        raise click.UsageError("name who may or may not: --allow-principal User:NAME or --deny-principal User:NAME")
    for word, hosts, principals in (("allow", allow_host, allow_principal), ("deny", deny_host, deny_principal)):
        if hosts and not principals:
            raise click.UsageError(f"--{word}-host says from where those of --{word}-principal come: name them too")
    wanted = _wanted(resources, operations, producer, consumer)
    who = [(*one, Permission.ALLOW) for one in product(allow_principal, allow_host or [ANY_HOST])]
    who += [(*one, Permission.DENY) for one in product(deny_principal, deny_host or [ANY_HOST])]
    acls = list(
        dict.fromkeys(
            _acl(resource, pattern, principal, host, operation, permission)
            for resource, operation in wanted
            for principal, host, permission in who
        )
    )
    for star in dict.fromkeys(star for acl in acls for star in literal_stars(acl)):
        warn(
            f"{star}: a star at the end of a name is a part of the name; for prefixes: --resource-pattern-type prefixed"
        )
    AccessRules(cluster).add(acls)
    for acl in acls:
        if as_json:
            print_json(acl_row(acl))
        else:
            click.echo(f"Added: {sentence(acl)}.")
    return FINE


def _wanted(
    resources: list[Resource], operations: tuple[Operation, ...], producer: bool, consumer: bool
) -> list[tuple[Resource, Operation]]:
    if not resources:
        raise click.UsageError("name a resource: --topic, --group, --transactional-id, --cluster, …")
    if (producer or consumer) == bool(operations):
        raise click.UsageError("give either --operation, or --producer or --consumer")
    roles = [needs for needs, is_meant in ((_OF_PRODUCERS, producer), (_OF_CONSUMERS, consumer)) if is_meant]
    wanted = [(resource, operation) for resource in resources for operation in operations]
    for resource in resources if roles else ():
        needed = [operation for needs in roles for operation in needs.get(resource.type, ())]
        if not needed:
            raise click.UsageError(f"--producer and --consumer need nothing of {resource.name!r}: leave it out")
        wanted += [(resource, operation) for operation in needed]
    return wanted


def _acl(
    resource: Resource, pattern: PatternType, principal: str, host: str, operation: Operation, permission: Permission
) -> Acl:
    try:
        acl = new_acl(*resource, pattern, principal, matching_host(host), operation, permission)
    except InvalidRequest as error:
        raise click.UsageError(str(error)) from None
    refuse_unmatched(acl)
    return acl
