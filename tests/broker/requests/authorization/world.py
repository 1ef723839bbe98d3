"""A broker with an authorizer, and users who ask it: each request as somebody, rules made by a super user."""

from collections.abc import Iterator
from typing import Any

from lamina.security.acls import Operation, PatternType, Permission, ResourceType
from lamina.settings.authorization import STANDARD_AUTHORIZER
from lamina.wire.fields import Entity, fields_of
from tests.broker.in_process import InProcessBroker

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
ROOT, ALICE = "User:root", "User:alice"
SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": ROOT}
AUTHORIZATION = frozenset({29, 30, 31, 53, 65})
EVERY: dict[str, Any] = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}

Rule = tuple[Operation, ResourceType, str]


class World:
    def __init__(self, broker: InProcessBroker) -> None:
        self.broker = broker

    def ask(self, api_key: int, version: int, *, user: str = ALICE, **facts: Any) -> Any:
        self.broker.principal = user
        return self.broker.ask(api_key, version, **facts)

    def allow(self, *rules: Rule, user: str = ALICE, kind: PatternType = PatternType.LITERAL) -> None:
        self._make(rules, user, kind, Permission.ALLOW)

    def deny(self, *rules: Rule, user: str = ALICE, kind: PatternType = PatternType.LITERAL) -> None:
        self._make(rules, user, kind, Permission.DENY)

    def _make(self, rules: tuple[Rule, ...], user: str, kind: PatternType, permission: Permission) -> None:
        creations = [
            {
                "resource_type": type_,
                "resource_name": name,
                "resource_pattern_type": kind,
                "principal": user,
                "host": "*",
                "operation": operation,
                "permission_type": permission,
            }
            for operation, type_, name in rules
        ]
        answer = self.ask(CREATE_ACLS, 3, user=ROOT, creations=creations)
        assert [one.error_code for one in answer.results] == [0] * len(rules)

    def forget(self) -> None:
        """Delete all rules."""
        answer = self.ask(DELETE_ACLS, 3, user=ROOT, filters=[EVERY])
        assert answer.filter_results[0].error_code == 0


def codes(answer: Any) -> set[int]:
    """Every error that is told, anywhere."""
    return {code for code in _codes(answer) if code}


def _codes(answer: Any) -> Iterator[int]:
    schema: type[Entity] = type(answer)
    for field in fields_of(schema):
        value = getattr(answer, field.name)
        if field.name in ("error_code", "partition_error_code"):
            yield int(value)
        elif field.entity is not None and value is not None:
            for one in value if field.is_array else (value,):
                yield from _codes(one)
