"""The features whose level a cluster agrees on (KIP-584), which librdkafka's Python binding cannot ask for.

Owns the requests. Any broker is asked: Kafka's send a change on to their controller. Must not know any command.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lamina import __version__
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.errors import error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.target import AnyBroker
from lamina.wire.api_keys import API_VERSIONS, UPDATE_FEATURES

_VERSIONS_WITH_FEATURES, _UPDATE_VERSIONS = range(3, 5), range(1, 2)


class Change(IntEnum):
    """Which direction a level may take, with the protocol's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    min_level: int | None
    """``None`` for both where the broker that was asked does not support it."""
    max_level: int | None
    level: int
    """0: not finalized."""
    epoch: int | None
    """Of all levels together; ``None`` where none was ever decided."""


class Features:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def described(self) -> list[Feature]:
        """By name."""
        # Version 3 leaves out what may be at level 0.
        answer = self._ask(
            MessageCall(
                API_VERSIONS,
                _VERSIONS_WITH_FEATURES,
                client_software_name="lamina",
                client_software_version=__version__,
            )
        )
        _check(answer.error_code, None)
        epoch = answer.finalized_features_epoch
        supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
        levels = {one.name: one.max_version_level for one in answer.finalized_features}
        return [
            Feature(name, *supported.get(name, (None, None)), levels.get(name, 0), None if epoch < 0 else epoch)
            for name in sorted(supported.keys() | levels.keys())
        ]

    def update(self, levels: Mapping[str, int], change: Change, *, is_dry_run: bool) -> None:
        """Set all levels or none; raises ClientError with the broker's reason."""
        updates = [
            {"feature": name, "max_version_level": level, "upgrade_type": int(change)} for name, level in levels.items()
        ]
        answer = self._ask(
            MessageCall(UPDATE_FEATURES, _UPDATE_VERSIONS, feature_updates=updates, validate_only=is_dry_run)
        )
        _check(answer.error_code, answer.error_message)
        for one in answer.results:
            _check(one.error_code, f"{one.feature}: {one.error_message}" if one.error_message else None)

    def _ask(self, call: MessageCall) -> Any:
        return self._cluster.ask(lambda peers: peers.request(AnyBroker(), call))


def _check(code: int, message: str | None) -> None:
    if code:
        reason = message or str(error_from_code(code, "the broker refused"))
        raise ClientError(f"{reason.rstrip('.')}; `lamina features describe` shows all features")
