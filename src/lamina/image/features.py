"""The features whose level a whole cluster agrees on, and which changes of a level are allowed.

A feature at level 0 is not finalized. A level is finalized only where every broker of the cluster supports it, so that
brokers of two versions can be one cluster; what a broker supports, it tells when it registers. Owns the list of
features, their ranges in this version and their levels in a new cluster. Must not know what follows from a level.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from lamina.errors import InvalidRequest, InvalidUpdateVersion, UnsupportedVersion
from lamina.image.changes import set_feature
from lamina.image.image import Broker, Features, Image

LAMINA_VERSION = "lamina.version"
"""Lamina's own formats: what brokers tell each other beside Kafka's messages, the znodes below ``/lamina``, the files
beside the logs. 1: those of Lamina 0.1. 2: access rules, SCRAM users and quotas, which a broker at level 1 would pass
over, and its metadata lose. It never goes down, because what was written stays."""
TRANSACTION_VERSION = "transaction.version"
"""2: each transaction ends with an epoch of its own, and clients need not add partitions (KIP-890). 0 and 1: neither;
1 lets the records of the coordinator's log grow."""

SUPPORTED: dict[str, range] = {LAMINA_VERSION: range(1, 3), TRANSACTION_VERSION: range(3)}
"""Levels by feature, of this version of Lamina."""
SECURITY_LEVEL = 2
"""Of ``lamina.version``: from here on every broker keeps access rules, SCRAM users and quotas, and obeys them."""
_UNKNOWN = range(1)
"""Whoever does not know a feature supports that it is not finalized."""


class UpgradeType(IntEnum):
    """Which direction a change of level may take, with the protocol's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    upgrade_type: int


def level_of(image: Image, feature: str) -> int:
    return image.features.levels.get(feature, 0)


def check_keeps_security(image: Image) -> None:
    """Raise unless every broker of the cluster keeps access rules, SCRAM users and quotas."""
    level = level_of(image, LAMINA_VERSION)
    if level < SECURITY_LEVEL:
        raise UnsupportedVersion(
            f"access rules, SCRAM users and quotas need {LAMINA_VERSION} at level {SECURITY_LEVEL}, "
            f"and it is at {level}: once every broker has this version, "
            f"run `lamina features upgrade {LAMINA_VERSION}={SECURITY_LEVEL}`"
        )


def finalize_new(image: Image, brokers: Collection[Broker]) -> Image:
    """The levels of a cluster in which none was ever decided: the highest that all brokers support.

    In any other cluster they are left as they are: whoever operates it raises them.
    """
    if image.features.epoch == 0:
        for feature in sorted({name for broker in brokers for name in broker.features}):
            image = set_feature(image, feature, min(_levels(broker, feature)[-1] for broker in brokers))
    return image


def why_unsupported(features: Features, supported: Mapping[str, range]) -> str | None:
    """Why one version of Lamina cannot be used with a cluster at these levels; ``None`` if it can."""
    for name, level in sorted(features.levels.items()):
        levels = supported.get(name)
        finalized = f"this cluster has finalized {name} at level {level}, and this version of Lamina"
        if levels is None:
            return f"{finalized} does not know that feature: use the version that the brokers run"
        if level > levels[-1]:
            return f"{finalized} supports {_words(levels)}: use the version that the brokers run"
        if level < levels[0]:
            raised = f"`lamina features upgrade {name}={levels[0]}`"
            return f"{finalized} supports {_words(levels)}: use the version before this one until you have run {raised}"
    return None


def update_features(image: Image, updates: Iterable[FeatureUpdate]) -> Image:
    """Set every level, or raise for the first that cannot be set."""
    named: set[str] = set()
    for update in updates:
        if update.name in named:
            raise InvalidRequest(f"{update.name} is named more than once")
        named.add(update.name)
        _check(image, update)
        if update.level != level_of(image, update.name):
            image = set_feature(image, update.name, update.level)
    return image


def _check(image: Image, update: FeatureUpdate) -> None:
    name, level, upgrade_type = update
    brokers = [broker for _, broker in sorted(image.brokers.items())]
    known, current = [broker.features[name] for broker in brokers if name in broker.features], level_of(image, name)
    if upgrade_type not in list(UpgradeType):
        raise _invalid(update, f"there is no upgrade type {upgrade_type}")
    if not known:
        raise _invalid(update, "this cluster has no such feature")
    if all(level not in levels for levels in known):
        raise _invalid(update, f"supported are {_words(max(known, key=lambda levels: levels[-1]))}")
    lacking = [broker for broker in brokers if level not in _levels(broker, name)]
    if lacking:
        raise _invalid(update, f"{_supporting(lacking, name)}; start every broker with the newer version first")
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(update, f"it is at {current}, and only a downgrade may lower it")
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(update, f"it is at {current}, and a downgrade cannot raise it")
    if level < current and name == LAMINA_VERSION:
        raise _invalid(update, f"it is at {current}, and what was written at that level stays")


def _levels(broker: Broker, feature: str) -> range:
    return broker.features.get(feature, _UNKNOWN)


def _supporting(brokers: Iterable[Broker], feature: str) -> str:
    return ", ".join(f"broker {broker.id} supports {_words(_levels(broker, feature))}" for broker in brokers)


def _words(levels: range) -> str:
    return f"level {levels[0]}" if len(levels) == 1 else f"levels {levels[0]} to {levels[-1]}"


def _invalid(update: FeatureUpdate, reason: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(f"{update.name} cannot be set to {update.level}: {reason}")
