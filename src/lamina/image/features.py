"""The features whose level a whole cluster agrees on, and which changes of a level are allowed.

A feature at level 0 is not finalized. Owns the list of features, their ranges and their levels in a new cluster. Must
not know what follows from a level.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from lamina.errors import InvalidRequest, InvalidUpdateVersion
from lamina.image.changes import set_feature
from lamina.image.image import Image

TRANSACTION_VERSION = "transaction.version"
"""2: each transaction ends with an epoch of its own, and clients need not add partitions (KIP-890). 0 and 1: neither;
1 lets the records of the coordinator's log grow."""

SUPPORTED = {TRANSACTION_VERSION: range(3)}
"""Levels by feature. A cluster begins at the highest."""


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


def finalize_new(image: Image) -> Image:
    """The levels of a cluster in which none was ever decided; any other is left as it is."""
    if image.features.epoch == 0:
        for feature, levels in SUPPORTED.items():
            image = set_feature(image, feature, levels[-1])
    return image


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
    supported, current = SUPPORTED.get(name), level_of(image, name)
    if upgrade_type not in list(UpgradeType):
        raise _invalid(update, f"there is no upgrade type {upgrade_type}")
    if supported is None:
        raise _invalid(update, "this cluster has no such feature")
    if level not in supported:
        raise _invalid(update, f"its levels are {supported[0]} to {supported[-1]}")
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(update, f"it is at {current}, and only a downgrade may lower it")
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(update, f"it is at {current}, and a downgrade cannot raise it")


def _invalid(update: FeatureUpdate, reason: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(f"{update.name} cannot be set to {update.level}: {reason}")
