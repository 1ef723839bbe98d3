"""Which levels features may be set to."""

import pytest

from lamina.errors import InvalidRequest, InvalidUpdateVersion
from lamina.image.changes import set_feature
from lamina.image.features import (
    SUPPORTED,
    TRANSACTION_VERSION,
    FeatureUpdate,
    UpgradeType,
    finalize_new,
    level_of,
    update_features,
)
from lamina.image.image import Features, Image

EMPTY = Image("cluster")


def test_a_new_cluster_begins_at_the_highest_levels() -> None:
    image = finalize_new(EMPTY)
    assert image.features == Features({name: levels[-1] for name, levels in SUPPORTED.items()}, len(SUPPORTED))
    assert level_of(image, TRANSACTION_VERSION) == 2


def test_levels_that_were_decided_are_left_as_they_are() -> None:
    """A feature that was set to 0 is not finalized, and yet decided."""
    image = set_feature(finalize_new(EMPTY), TRANSACTION_VERSION, 0)
    assert finalize_new(image) is image
    assert level_of(image, TRANSACTION_VERSION) == 0


@pytest.mark.parametrize(
    ("current", "level", "upgrade_type"),
    [(0, 2, 1), (0, 1, 1), (1, 2, 1), (2, 2, 1), (2, 2, 2), (2, 1, 2), (2, 0, 2), (2, 0, 3), (0, 0, 3)],
)
def test_a_level_is_set(current: int, level: int, upgrade_type: int) -> None:
    image = update_features(
        set_feature(EMPTY, TRANSACTION_VERSION, current), [FeatureUpdate(TRANSACTION_VERSION, level, upgrade_type)]
    )
    assert level_of(image, TRANSACTION_VERSION) == level
    assert image.features.epoch == (1 if level == current else 2)


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type", "reason"),
    [
        (TRANSACTION_VERSION, 3, 1, "its levels are 0 to 2"),
        (TRANSACTION_VERSION, -1, 2, "its levels are 0 to 2"),
        (TRANSACTION_VERSION, 0, UpgradeType.UPGRADE, "it is at 1, and only a downgrade may lower it"),
        (TRANSACTION_VERSION, 2, UpgradeType.SAFE_DOWNGRADE, "it is at 1, and a downgrade cannot raise it"),
        (TRANSACTION_VERSION, 2, UpgradeType.UNSAFE_DOWNGRADE, "it is at 1, and a downgrade cannot raise it"),
        (TRANSACTION_VERSION, 2, 0, "there is no upgrade type 0"),
        (TRANSACTION_VERSION, 2, 9, "there is no upgrade type 9"),
        ("metadata.version", 7, 1, "this cluster has no such feature"),
        ("", 0, 1, "this cluster has no such feature"),
    ],
)
def test_what_cannot_be_is_refused(name: str, level: int, upgrade_type: int, reason: str) -> None:
    image = set_feature(EMPTY, TRANSACTION_VERSION, 1)
    with pytest.raises(InvalidUpdateVersion, match=reason):
        update_features(image, [FeatureUpdate(name, level, upgrade_type)])


def test_a_feature_is_named_once() -> None:
    twice = FeatureUpdate(TRANSACTION_VERSION, 2, 1)
    with pytest.raises(InvalidRequest, match="more than once"):
        update_features(EMPTY, [twice, twice])
