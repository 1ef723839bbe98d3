"""The values of Kafka's znodes for access rules, quotas and SCRAM credentials.

Owns those forms of JSON. What is read is believed only in the types that are written: anything else raises
``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError``. Must not know paths.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping

from lamina.security.acls import AccessRule, Operation, Permission
from lamina.security.scram_credential import MECHANISMS, ScramCredential, ScramMechanism
from lamina.store import values
from lamina.store.security_values import quota_value

_OPERATIONS = {operation: operation.name.title().replace("_", "") for operation in Operation}
_PERMISSIONS = {permission: permission.name.title() for permission in Permission}
_OPERATIONS_BY_NAME = {name: operation for operation, name in _OPERATIONS.items()}
_PERMISSIONS_BY_NAME = {name: permission for permission, name in _PERMISSIONS.items()}


def dump_rules(rules: frozenset[AccessRule]) -> bytes:
    acls = [
        {
            "principal": rule.principal,
            "permissionType": _PERMISSIONS[rule.permission],
            "operation": _OPERATIONS[rule.operation],
            "host": rule.host,
        }
        for rule in sorted(rules)
    ]
    return values.dump({"version": 1, "acls": acls})


def load_rules(data: bytes) -> frozenset[AccessRule]:
    return frozenset(
        AccessRule(
            values.text(acl["principal"]),
            values.text(acl["host"]),
            _OPERATIONS_BY_NAME[acl["operation"]],
            _PERMISSIONS_BY_NAME[acl["permissionType"]],
        )
        for acl in values.load(data)["acls"]
    )


def user_configs(quotas: Mapping[str, float], credentials: Mapping[ScramMechanism, ScramCredential]) -> dict[str, str]:
    """What Kafka keeps together of one entity; only users have credentials."""
    configs = {key: str(value) for key, value in quotas.items()}
    return configs | {mechanism.sasl_name: _credential(each) for mechanism, each in credentials.items()}


def quotas_in(configs: Mapping[str, str]) -> dict[str, float]:
    return {key: quota_value(float(value)) for key, value in configs.items() if key not in MECHANISMS}


def credentials_in(configs: Mapping[str, str]) -> dict[ScramMechanism, ScramCredential]:
    return {mechanism: _parsed_credential(configs[name]) for name, mechanism in MECHANISMS.items() if name in configs}


def _credential(credential: ScramCredential) -> str:
    salt, stored_key, server_key = (b64encode(each).decode() for each in credential[:3])
    return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={credential.iterations}"


def _parsed_credential(text: str) -> ScramCredential:
    parts = dict(part.split("=", 1) for part in text.split(","))
    salt, stored_key, server_key = (
        b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key")
    )
    return ScramCredential(salt, stored_key, server_key, int(parts["iterations"]))
