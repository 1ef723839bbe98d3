"""Filters of access rules from options: one for each combination of what was named; what was not named is everything.

Must not know what is done with what they find.
"""

from collections.abc import Sequence
from itertools import product

from lamina.cli.acls.resources import Resource
from lamina.security.acl_filters import AclFilter
from lamina.security.acls import Operation, PatternType, Permission, ResourceType


def filters_from(
    resources: Sequence[Resource],
    principals: Sequence[str],
    operations: Sequence[Operation],
    pattern: PatternType,
    hosts: Sequence[str] = (),
) -> list[AclFilter]:
    which: Sequence[Resource | None] = resources or [None]
    whom: Sequence[str | None] = principals or [None]
    where: Sequence[str | None] = hosts or [None]
    return [
        AclFilter(
            ResourceType.ANY if resource is None else resource.type,
            None if resource is None else resource.name,
            pattern,
            principal,
            host,
            operation,
            Permission.ANY,
        )
        for resource, principal, operation, host in product(which, whom, operations or [Operation.ANY], where)
    ]
