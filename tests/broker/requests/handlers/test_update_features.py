"""Features as clients see and change them."""

from dataclasses import replace
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.image.features import LAMINA_VERSION, SUPPORTED
from lamina.image.image import Features
from lamina.store.interface import StoreError
from tests.broker.in_process import InProcessBroker

UPDATE_FEATURES, API_VERSIONS = 57, 18
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
NAME = "transaction.version"
OLDER = {LAMINA_VERSION: SUPPORTED[LAMINA_VERSION], NAME: range(2)}


def shown(broker: InProcessBroker, version: int = 4) -> Any:
    return broker.ask(API_VERSIONS, version, client_software_name="test", client_software_version="1")


def finalized(broker: InProcessBroker) -> dict[str, int]:
    features = shown(broker).finalized_features
    assert all(feature.min_version_level == feature.max_version_level for feature in features)
    return {feature.name: feature.max_version_level for feature in features}


def update(broker: InProcessBroker, level: int, version: int = 2, feature: str = NAME, **named: Any) -> Any:
    fields = ("allow_downgrade", "upgrade_type")
    asked = {"feature": feature, "max_version_level": level, "upgrade_type": UPGRADE}
    asked |= {name: value for name, value in named.items() if name in fields}
    rest = {name: value for name, value in named.items() if name not in fields}
    return broker.ask(UPDATE_FEATURES, version, timeout=1000, feature_updates=[asked], **rest)


def test_a_new_cluster_has_the_highest_levels(broker: InProcessBroker) -> None:
    answer = shown(broker)
    supported = [(each.name, each.min_version, each.max_version) for each in answer.supported_features]
    assert supported == [(LAMINA_VERSION, 1, 2), (NAME, 0, 2)]
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 2}
    assert answer.finalized_features_epoch >= 0


def test_older_clients_are_told_of_no_feature_that_may_be_at_0(broker: InProcessBroker) -> None:
    answer = shown(broker, 3)
    assert [each.name for each in answer.supported_features] == [LAMINA_VERSION]
    assert [each.name for each in answer.finalized_features] == [LAMINA_VERSION, NAME]
    assert answer.finalized_features_epoch >= 0


def test_a_data_directory_of_before_gets_the_features_at_its_next_start(broker: InProcessBroker) -> None:
    forgetting = broker.parts.metadata.change(lambda image: replace(image, features=Features()))
    broker.parts.loop.run_until_complete(forgetting)
    assert finalized(broker) == {}
    broker.restart()
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 2}


def test_a_level_is_changed_at_once_and_for_good(broker: InProcessBroker) -> None:
    epoch = shown(broker).finalized_features_epoch
    assert update(broker, 1, upgrade_type=SAFE_DOWNGRADE).error_code == 0
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 1}
    assert shown(broker).finalized_features_epoch > epoch
    assert update(broker, 0, upgrade_type=UNSAFE_DOWNGRADE).error_code == 0
    assert finalized(broker) == {LAMINA_VERSION: 2}
    broker.restart()
    assert finalized(broker) == {LAMINA_VERSION: 2}
    assert update(broker, 2).error_code == 0
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 2}


def test_a_dry_run_changes_nothing(broker: InProcessBroker) -> None:
    assert update(broker, 1, upgrade_type=SAFE_DOWNGRADE, validate_only=True).error_code == 0
    assert update(broker, 1, validate_only=True).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 2}


def test_version_0_allows_downgrades_by_a_flag(broker: InProcessBroker) -> None:
    assert update(broker, 1, version=0, allow_downgrade=False).error_code == ErrorCode.INVALID_UPDATE_VERSION
    answer = update(broker, 1, version=0, allow_downgrade=True)
    assert answer.error_code == 0
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 1}


@pytest.mark.parametrize("version", [0, 1])
def test_success_is_told_for_each_feature_in_older_versions(broker: InProcessBroker, version: int) -> None:
    answer = update(broker, 2, version=version)
    assert [(each.feature, each.error_code, each.error_message) for each in answer.results] == [(NAME, 0, None)]


@pytest.mark.parametrize("version", [1, 2])
def test_an_error_is_told_for_the_whole_request(broker: InProcessBroker, version: int) -> None:
    answer = update(broker, 1, version=version, feature="kraft.version")
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "kraft.version cannot be set to 1" in answer.error_message
    if version < 2:
        assert answer.results == ()


def test_an_older_version_does_not_start_on_what_a_newer_one_has_finalized(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.close()
    for name, levels in OLDER.items():
        monkeypatch.setitem(SUPPORTED, name, levels)
    with pytest.raises(
        StoreError, match=r"transaction.version at level 2, and this version of Lamina supports levels 0 to 1: "
    ):
        broker.start()
    monkeypatch.undo()
    broker.start()
    assert finalized(broker) == {LAMINA_VERSION: 2, NAME: 2}
