"""Quotas of users, client ids and addresses, which librdkafka's Python binding cannot ask for.

Owns the requests. Any broker is asked: a change is sent on to the controller. Must not know any command.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.client.cluster import Cluster
from lamina.client.errors import refusal
from lamina.peer.call import MessageCall
from lamina.peer.target import AnyBroker
from lamina.security.quota_filters import FilterComponent
from lamina.security.quotas import QuotaEntity
from lamina.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS

_VERSIONS = range(2)


class Quotas:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def described(self, components: Sequence[FilterComponent]) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
        """Of the entities that have exactly these types; without any, of all entities."""
        wanted = [
            {"entity_type": one.entity_type, "match_type": one.match_type, "match": one.name} for one in components
        ]
        call = MessageCall(DESCRIBE_CLIENT_QUOTAS, _VERSIONS, components=wanted, strict=bool(components))
        answer = self._ask(call)
        _check(answer.error_code, answer.error_message)
        found = [
            (_entity(entry.entity), {value.key: value.value for value in entry.values}) for entry in answer.entries
        ]
        return sorted(found, key=lambda one: [(kind, name is not None, name or "") for kind, name in reversed(one[0])])

    def alter(self, entity: QuotaEntity, values: Mapping[str, float | None], *, is_dry_run: bool) -> None:
        """``None`` removes a quota. Raises ClientError with the broker's reason."""
        entry = {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [
                {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
                for key, value in values.items()
            ],
        }
        answer = self._ask(MessageCall(ALTER_CLIENT_QUOTAS, _VERSIONS, entries=[entry], validate_only=is_dry_run))
        for told in answer.entries:
            _check(told.error_code, told.error_message)

    def _ask(self, call: MessageCall) -> Any:
        return self._cluster.ask(lambda peers: peers.request(AnyBroker(), call))


def _entity(told: Any) -> QuotaEntity:
    return tuple(sorted((one.entity_type, one.entity_name) for one in told))


def _check(code: int, message: str | None) -> None:
    if code:
        raise refusal(code, message)
