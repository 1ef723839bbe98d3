"""A cluster's access rules: Kafka's ACLs, of which librdkafka's Python binding knows only some types of resource.

Owns the requests. Any broker is asked: it sends a change on to the controller. Must not know any command.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, refusal
from lamina.peer.call import MessageCall
from lamina.peer.target import AnyBroker
from lamina.security.acl_filters import Acl, AclFilter
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType
from lamina.wire.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS

_VERSIONS = range(1, 4)


class AccessRules:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def found(self, wanted: AclFilter) -> list[Acl]:
        answer = self._ask(MessageCall(DESCRIBE_ACLS, _VERSIONS, **_facts(wanted)))
        _check(answer.error_code, answer.error_message)
        return [
            _acl(resource.resource_type, resource.resource_name, resource.pattern_type, acl)
            for resource in answer.resources
            for acl in resource.acls
        ]

    def add(self, acls: Sequence[Acl]) -> None:
        """Raises the first reason why one of them was refused; the others are made."""
        creations = [
            {
                "resource_type": pattern.type,
                "resource_name": pattern.name,
                "resource_pattern_type": pattern.pattern,
                "principal": rule.principal,
                "host": rule.host,
                "operation": rule.operation,
                "permission_type": rule.permission,
            }
            for pattern, rule in acls
        ]
        answer = self._ask(MessageCall(CREATE_ACLS, _VERSIONS, creations=creations))
        for result in answer.results:
            _check(result.error_code, result.error_message)

    def remove(self, filters: Iterable[AclFilter]) -> list[Acl]:
        """What went."""
        answer = self._ask(MessageCall(DELETE_ACLS, _VERSIONS, filters=[_facts(one) for one in filters]))
        removed = []
        for result in answer.filter_results:
            _check(result.error_code, result.error_message)
            for acl in result.matching_acls:
                _check(acl.error_code, acl.error_message)
                removed.append(_acl(acl.resource_type, acl.resource_name, acl.pattern_type, acl))
        return removed

    def _ask(self, call: MessageCall) -> Any:
        return self._cluster.ask(lambda peers: peers.request(AnyBroker(), call))


def exactly(acl: Acl) -> AclFilter:
    """The filter that finds this one rule."""
    pattern, rule = acl
    return AclFilter(
        pattern.type, pattern.name, pattern.pattern, rule.principal, rule.host, rule.operation, rule.permission
    )


def _facts(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _acl(type_: int, name: str, pattern: int, acl: Any) -> Acl:
    try:
        return Acl(
            ResourcePattern(ResourceType(type_), name, PatternType(pattern)),
            AccessRule(acl.principal, acl.host, Operation(acl.operation), Permission(acl.permission_type)),
        )
    except ValueError as error:
        raise ClientError(f"the broker told an access rule that this version does not know: {error}") from None


def _check(code: int, message: str | None) -> None:
    if code:
        raise refusal(code, message)
