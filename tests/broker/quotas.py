"""Quotas of clients, set and read over the protocol."""

from collections.abc import Mapping
from typing import Any, Protocol

from lamina.security.quotas import QuotaEntity

ALTER = 49


class Asks(Protocol):
    def ask(self, api_key: int, api_version: int, **facts: Any) -> Any: ...


def entity_of(entity: Mapping[str, str | None]) -> list[dict[str, Any]]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()]


def alter(broker: Asks, entity: Mapping[str, str | None], version: int = 1, **quotas: float | None) -> None:
    """Set these quotas; ``None`` removes one."""
    operations = [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in quotas.items()]
    response = broker.ask(ALTER, version, entries=[{"entity": entity_of(entity), "ops": operations}])
    [entry] = response.entries
    assert entry.error_code == 0, entry.error_message


def quotas_of(answer: Any) -> dict[QuotaEntity, dict[str, float]]:
    """What DescribeClientQuotas told."""
    assert answer.error_code == 0, answer.error_message
    return {
        tuple((one.entity_type, one.entity_name) for one in entry.entity): {one.key: one.value for one in entry.values}
        for entry in answer.entries
    }
