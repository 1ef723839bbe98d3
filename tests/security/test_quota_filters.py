"""Filters of DescribeClientQuotas (S68)."""

import pytest

from lamina.errors import InvalidRequest, KafkaError, UnsupportedVersion
from lamina.security.quota_filters import FilterComponent, MatchType, QuotaFilter
from lamina.security.quotas import QuotaEntity, quota_entity

ALICE = quota_entity([("user", "alice")])
ALICE_APP = quota_entity([("user", "alice"), ("client-id", "app")])
DEFAULT = quota_entity([("user", None)])
ADDRESS = quota_entity([("ip", "10.0.0.1")])
EVERY = [ALICE, ALICE_APP, DEFAULT, ADDRESS]


def matched(*components: FilterComponent, is_strict: bool = False) -> list[QuotaEntity]:
    asked = QuotaFilter(components, is_strict=is_strict)
    return [entity for entity in EVERY if asked.matches(entity)]


def test_a_match_is_of_a_name_of_the_default_or_of_any() -> None:
    """S68."""
    assert matched(FilterComponent("user", MatchType.EXACT, "alice")) == [ALICE, ALICE_APP]
    assert matched(FilterComponent("user", MatchType.DEFAULT)) == [DEFAULT]
    assert matched(FilterComponent("user", MatchType.ANY)) == [ALICE, ALICE_APP, DEFAULT]
    assert matched(FilterComponent("ip", MatchType.ANY)) == [ADDRESS]


def test_a_strict_filter_wants_no_other_types() -> None:
    """S68."""
    assert matched(FilterComponent("user", MatchType.ANY), is_strict=True) == [ALICE, DEFAULT]
    both = FilterComponent("user", MatchType.ANY), FilterComponent("client-id", MatchType.ANY)
    assert matched(*both, is_strict=True) == [ALICE_APP]


def test_without_components_all_match_or_strictly_none() -> None:
    assert matched() == EVERY
    assert matched(is_strict=True) == []


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([FilterComponent("user", 0)], InvalidRequest),
        ([FilterComponent("user", 1, "alice")], InvalidRequest),
        ([FilterComponent("user", 2, "alice")], InvalidRequest),
        ([FilterComponent("user", 3)], InvalidRequest),
        ([FilterComponent("", 2)], InvalidRequest),
        ([FilterComponent("user", 2), FilterComponent("user", 1)], InvalidRequest),
        ([FilterComponent("ip", 2), FilterComponent("user", 2)], InvalidRequest),
        ([FilterComponent("group", 2)], UnsupportedVersion),
    ],
)
def test_filters_that_cannot_be_are_refused(components: list[FilterComponent], error: type[KafkaError]) -> None:
    """S68."""
    with pytest.raises(error):
        QuotaFilter(components, is_strict=False)
