"""Access rules, SCRAM credentials and quotas as JSON: what SQLite keeps, and what a controller tells its followers.

Owns the forms. What is read is believed only in the types that are written: anything else raises ``ValueError``,
``KeyError``, ``TypeError`` or ``AttributeError``. Must not know paths, nor Kafka's znodes.
"""

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern, ResourceType
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.store.values import number, text


def rules_as_json(rules: frozenset[AccessRule]) -> list[list[Any]]:
    return [
        [principal, host, int(operation), int(permission)] for principal, host, operation, permission in sorted(rules)
    ]


def rules_from_json(value: Any) -> frozenset[AccessRule]:
    return frozenset(
        AccessRule(text(principal), text(host), Operation(operation), Permission(permission))
        for principal, host, operation, permission in value
    )


def pattern_from_json(type_: Any, name: Any, pattern: Any) -> ResourcePattern:
    return ResourcePattern(ResourceType(type_), text(name), PatternType(pattern))


def credentials_as_json(credentials: Mapping[ScramMechanism, ScramCredential]) -> dict[str, list[Any]]:
    return {
        str(int(mechanism)): [*(b64encode(each).decode() for each in credential[:3]), credential.iterations]
        for mechanism, credential in sorted(credentials.items())
    }


def credentials_from_json(value: Mapping[str, Any]) -> dict[ScramMechanism, ScramCredential]:
    return {
        ScramMechanism(int(mechanism)): ScramCredential(
            b64decode(text(salt), validate=True),
            b64decode(text(stored_key), validate=True),
            b64decode(text(server_key), validate=True),
            number(iterations),
        )
        for mechanism, (salt, stored_key, server_key, iterations) in value.items()
    }


def entity_from_json(value: Any) -> QuotaEntity:
    return tuple((text(kind), None if name is None else text(name)) for kind, name in value)


def quotas_from_json(value: Mapping[str, Any]) -> dict[str, float]:
    return {text(key): quota_value(quota) for key, quota in value.items()}


def quota_value(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not the value of a quota")
    return float(value)
