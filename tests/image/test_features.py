"""Which levels features may be set to, and who may take part in a cluster at these levels."""

import pytest

from lamina.errors import InvalidRequest, InvalidUpdateVersion, UnsupportedVersion
from lamina.image.changes import set_feature
from lamina.image.features import (
    LAMINA_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
    FeatureUpdate,
    UpgradeType,
    check_keeps_security,
    finalize_new,
    level_of,
    update_features,
    why_unsupported,
)
from lamina.image.image import Broker, Features, Image

OLDER = {TRANSACTION_VERSION: range(2)}
NEWER = {LAMINA_VERSION: range(1, 4), TRANSACTION_VERSION: range(4)}


def brokers(*supported: dict[str, range]) -> list[Broker]:
    return [Broker(number, {}, features=features) for number, features in enumerate(supported, 1)]


def cluster(*supported: dict[str, range], **levels: int) -> Image:
    """With a broker for each; underscores in the names of features stand for dots."""
    image = Image("cluster", {broker.id: broker for broker in brokers(*supported)})
    for name, level in levels.items():
        image = set_feature(image, name.replace("_", "."), level)
    return image


def upgraded(image: Image, name: str, level: int) -> Image:
    return update_features(image, [FeatureUpdate(name, level, UpgradeType.UPGRADE)])


# A new cluster


def test_a_new_cluster_begins_at_the_highest_levels() -> None:
    image = finalize_new(cluster(), brokers(SUPPORTED))
    assert image.features == Features({name: levels[-1] for name, levels in SUPPORTED.items()}, len(SUPPORTED))
    assert level_of(image, TRANSACTION_VERSION) == 2


def test_a_new_cluster_of_two_versions_begins_at_what_both_support() -> None:
    image = finalize_new(cluster(), brokers(NEWER, OLDER, SUPPORTED))
    assert image.features.levels == {TRANSACTION_VERSION: 1}


def test_levels_that_were_decided_are_left_as_they_are() -> None:
    """A feature that was set to 0 is not finalized, and yet decided."""
    image = set_feature(finalize_new(cluster(), brokers(SUPPORTED)), TRANSACTION_VERSION, 0)
    assert finalize_new(image, brokers(NEWER)) is image
    assert level_of(image, TRANSACTION_VERSION) == 0


# Changes


@pytest.mark.parametrize(
    ("current", "level", "upgrade_type"),
    [(0, 2, 1), (0, 1, 1), (1, 2, 1), (2, 2, 1), (2, 2, 2), (2, 1, 2), (2, 0, 2), (2, 0, 3), (0, 0, 3)],
)
def test_a_level_is_set(current: int, level: int, upgrade_type: int) -> None:
    image = update_features(
        cluster(SUPPORTED, transaction_version=current), [FeatureUpdate(TRANSACTION_VERSION, level, upgrade_type)]
    )
    assert level_of(image, TRANSACTION_VERSION) == level
    assert image.features.epoch == (1 if level == current else 2)


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type", "reason"),
    [
        (TRANSACTION_VERSION, 3, 1, "supported are levels 0 to 2"),
        (TRANSACTION_VERSION, -1, 2, "supported are levels 0 to 2"),
        (TRANSACTION_VERSION, 0, UpgradeType.UPGRADE, "it is at 1, and only a downgrade may lower it"),
        (TRANSACTION_VERSION, 2, UpgradeType.SAFE_DOWNGRADE, "it is at 1, and a downgrade cannot raise it"),
        (TRANSACTION_VERSION, 2, UpgradeType.UNSAFE_DOWNGRADE, "it is at 1, and a downgrade cannot raise it"),
        (TRANSACTION_VERSION, 2, 0, "there is no upgrade type 0"),
        (TRANSACTION_VERSION, 2, 9, "there is no upgrade type 9"),
        (LAMINA_VERSION, 3, 1, "supported are levels 1 to 2$"),
        ("metadata.version", 7, 1, "this cluster has no such feature"),
        ("", 0, 1, "this cluster has no such feature"),
    ],
)
def test_what_cannot_be_is_refused(name: str, level: int, upgrade_type: int, reason: str) -> None:
    with pytest.raises(InvalidUpdateVersion, match=reason):
        update_features(cluster(SUPPORTED, transaction_version=1), [FeatureUpdate(name, level, upgrade_type)])


def test_a_level_waits_until_every_broker_supports_it() -> None:
    image = cluster(NEWER, OLDER, NEWER, transaction_version=1)
    with pytest.raises(
        InvalidUpdateVersion, match=r": broker 2 supports levels 0 to 1; start every broker with the newer"
    ):
        upgraded(image, TRANSACTION_VERSION, 2)
    assert level_of(upgraded(cluster(NEWER, NEWER, NEWER), TRANSACTION_VERSION, 2), TRANSACTION_VERSION) == 2


def test_a_feature_that_a_broker_does_not_know_waits_for_it() -> None:
    with pytest.raises(
        InvalidUpdateVersion, match=r"lamina.version cannot be set to 3: broker 1 supports level 0, broker 3"
    ):
        upgraded(cluster(OLDER, NEWER, SUPPORTED), LAMINA_VERSION, 3)


@pytest.mark.parametrize("upgrade_type", [UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE])
def test_our_own_formats_never_go_back(upgrade_type: UpgradeType) -> None:
    image = upgraded(cluster(NEWER, lamina_version=1), LAMINA_VERSION, 2)
    with pytest.raises(InvalidUpdateVersion, match="it is at 2, and what was written at that level stays"):
        update_features(image, [FeatureUpdate(LAMINA_VERSION, 1, upgrade_type)])


@pytest.mark.parametrize("level", [0, 1])
def test_access_rules_users_and_quotas_wait_until_every_broker_keeps_them(level: int) -> None:
    image = cluster(SUPPORTED)
    if level:
        image = set_feature(image, LAMINA_VERSION, level)
    with pytest.raises(
        UnsupportedVersion, match=f"need lamina.version at level 2, and it is at {level}: once every broker"
    ):
        check_keeps_security(image)
    check_keeps_security(upgraded(image, LAMINA_VERSION, 2))


def test_a_feature_is_named_once() -> None:
    twice = FeatureUpdate(TRANSACTION_VERSION, 2, 1)
    with pytest.raises(InvalidRequest, match="more than once"):
        update_features(cluster(SUPPORTED), [twice, twice])


# Who may take part


@pytest.mark.parametrize("levels", [{}, {TRANSACTION_VERSION: 2}, {TRANSACTION_VERSION: 1, LAMINA_VERSION: 1}])
def test_a_version_takes_part_where_it_supports_every_level(levels: dict[str, int]) -> None:
    assert why_unsupported(Features(levels), SUPPORTED) is None


@pytest.mark.parametrize(
    ("levels", "supported", "reason"),
    [
        (
            {TRANSACTION_VERSION: 2},
            OLDER,
            "this cluster has finalized transaction.version at level 2, and this version of Lamina supports "
            "levels 0 to 1: use the version that the brokers run",
        ),
        (
            {LAMINA_VERSION: 1, TRANSACTION_VERSION: 1},
            OLDER,
            "this cluster has finalized lamina.version at level 1, and this version of Lamina does not know that "
            "feature: use the version that the brokers run",
        ),
        (
            {LAMINA_VERSION: 1},
            {LAMINA_VERSION: range(2, 4)},
            "this cluster has finalized lamina.version at level 1, and this version of Lamina supports levels 2 to 3: "
            "use the version before this one until you have run `lamina features upgrade lamina.version=2`",
        ),
    ],
)
def test_a_version_that_could_not_read_what_is_written_is_refused(
    levels: dict[str, int], supported: dict[str, range], reason: str
) -> None:
    assert why_unsupported(Features(levels), supported) == reason
